// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dashboard/dashboard_model.h"

namespace tidemark::dashboard {

// What a character of the plot stands for; the view gives it its colour.
enum class Ink { kNone, kFloor, kCurve, kLimit, kCursor };

struct PlotCell {
  std::string glyph = " ";
  Ink ink = Ink::kNone;
};

// A curve drawn with characters: what lies below the low-water line is filled thinly, the curve
// runs above it. What hardly changes is a line in the middle, with nothing below it. Braille dots
// where the terminal knows them, else one character per cell.
struct Plot {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<PlotCell> cells;  // line by line, from the top
  double low_bytes = 0.0;
  double high_bytes = 0.0;

  const PlotCell& at(std::size_t x, std::size_t y) const { return cells[y * width + x]; }
};

Plot draw_timeline(const TimelineModel& timeline, std::size_t width, std::size_t height, bool utf8);

// The column of a moment, or nullopt outside of the window.
std::optional<std::size_t> plot_column(const TimelineModel& timeline, std::size_t width,
                                       double t_s);

struct PhaseLine {
  std::string line;    // exactly as many columns as asked for
  std::string legend;  // "░ eval  ▓ save": the names that are nowhere in the line in full
};

// Phases as shaded stretches below the plot: a shade for each name, and in every stretch its name,
// or as many letters as fit. Where there are more names than shades the letters tell. An inner
// phase lies over the outer one.
PhaseLine draw_phases(const TimelineModel& timeline, std::size_t width, bool utf8);

}  // namespace tidemark::dashboard
