// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <ftxui/dom/elements.hpp>

#include "dashboard/dashboard_model.h"
#include "dashboard/layout.h"

// From model to element, each a pure function: no state, no clock, no terminal. Others use
// screen_text().
namespace tidemark::dashboard {

ftxui::Element banner_view(const BannerModel& banner, int width, int lines, const Theme& theme);
ftxui::Element machine_view(const MachineModel& machine, int width, const Theme& theme);
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
ftxui::Element overlay_view(const OverlayModel& overlay, const OverlayPage& page,
                            const Theme& theme);
ftxui::Element small_view(const DashboardModel& model, const Theme& theme);
// All of them.
ftxui::Element dashboard_view(const DashboardModel& model, const Layout& layout,
                              const Theme& theme);

// What they have in common.

// Of the sixteen colours that every terminal has; none without colour.
ftxui::Decorator ink(ftxui::Color::Palette16 color, const Theme& theme);
ftxui::Decorator tone_style(Tone tone, const Theme& theme);
// A line of text that gives way where there is not enough room, and shows by dots that it did: half
// a number is another number.
ftxui::Element cut_text(std::string text);
// "-- title ---------- right --": the title of a pane.
ftxui::Element title_line(const std::string& title, const std::string& right, bool is_focused,
                          const Theme& theme);
// Exactly so many lines: cut or filled up.
ftxui::Element exactly(ftxui::Elements rows, int lines);

}  // namespace tidemark::dashboard
