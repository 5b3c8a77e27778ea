// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ftxui/dom/elements.hpp>

#include "dashboard/dashboard_model.h"
#include "dashboard/layout.h"

// From model to element, each a pure function: no state, no clock, no terminal. Internal to
// monitor/tui; others use screen_text().
namespace tidemark::dashboard {

ftxui::Element banner_view(const BannerModel& banner, int width, int lines, const Theme& theme);
ftxui::Element timeline_view(const TimelineModel& timeline, const Layout& layout,
                             const Theme& theme);
ftxui::Element tree_view(const TreeModel& tree, int width, int lines, const Theme& theme);
ftxui::Element detail_view(const DetailModel& detail, int width, int lines, const Theme& theme);
ftxui::Element gpu_view(const std::vector<GpuModel>& gpus, int width, int lines,
                        const Theme& theme);
ftxui::Element sites_view(const std::vector<SiteRow>& sites, int width, int lines,
                          const Theme& theme);
ftxui::Element jobs_view(const std::vector<JobRow>& jobs, int width, int lines, const Theme& theme);
ftxui::Element output_view(const DashboardModel& model, int width, int lines, const Theme& theme);
ftxui::Element status_view(const StatusModel& status, int width, const Theme& theme);
ftxui::Element help_view(const HelpPage& page, const Theme& theme);
ftxui::Element small_view(const DashboardModel& model, const Theme& theme);
// All of them.
ftxui::Element dashboard_view(const DashboardModel& model, const Layout& layout,
                              const Theme& theme);

}  // namespace tidemark::dashboard
