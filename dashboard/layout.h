// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dashboard/dashboard_model.h"

namespace tidemark::dashboard {

inline constexpr int kLeastWidth = 40;
inline constexpr int kLeastHeight = 12;
inline constexpr int kPlotX = 10;  // where the curve begins: to its left are the labels of the axis

// How many lines each part of the screen gets, titles included; 0: not shown. They add up to the
// height.
struct Layout {
  bool is_too_small = false;
  int width = 0;
  int height = 0;
  int banner = 0;
  int machine = 0;
  int timeline = 0;
  bool has_marks_line = false;   // of the timeline
  bool has_phases_line = false;  // likewise
  int gpu = 0;
  int sites = 0;
  int jobs = 0;
  int tree = 0;  // its title and header, then rows
  int detail = 0;
  int output = 0;
  int status = 1;

  int plot_lines() const {
    return timeline - 2 - (has_marks_line ? 1 : 0) - (has_phases_line ? 1 : 0);
  }
  int tree_rows() const { return tree - 2; }
};

Layout plan_layout(const DashboardModel& model, int width, int height);

// The first of `shown` rows, so that the selected one is among them: as near as possible to the one
// that was the first before. A click must not move what is below the mouse.
std::size_t first_visible_row(const TreeModel& tree, std::size_t shown);

// The text over the screen as it is shown: wrapped, and as much of it as there is room for.
struct OverlayPage {
  std::vector<std::string> lines;  // all of them
  std::size_t first = 0;
  std::size_t shown = 0;
  std::size_t last_first() const { return lines.size() - shown; }
};
OverlayPage overlay_page(const OverlayModel& overlay, const Layout& layout);

// What keys and the mouse act on.
Scene scene_of(const DashboardModel& model, const Layout& layout);

// The whole screen, a string per line: with escape sequences for a terminal, or plain for a file.
// The terminal's lines each begin and end in the default style.
std::vector<std::string> screen_lines(const DashboardModel& model, int width, int height,
                                      const Theme& theme);
std::vector<std::string> screen_text(const DashboardModel& model, int width, int height,
                                     const Theme& theme);

}  // namespace tidemark::dashboard
