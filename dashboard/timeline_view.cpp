// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <ftxui/dom/node.hpp>
#include <ftxui/screen/screen.hpp>
#include <ftxui/screen/string.hpp>

#include "common/units.h"
#include "dashboard/timeline_plot.h"
#include "dashboard/views.h"

namespace tidemark::dashboard {
namespace {

using ftxui::Color;
using ftxui::Element;
using ftxui::Elements;
using ftxui::text;

constexpr int kLabelColumns = kPlotX;

// A finished plot as an element: copied cell by cell, which is much cheaper than an element each.
class PlotNode final : public ftxui::Node {
 public:
  PlotNode(Plot plot, const Theme& theme) : plot_(std::move(plot)), theme_(theme) {}

  void ComputeRequirement() override {
    requirement_.min_x = static_cast<int>(plot_.width);
    requirement_.min_y = static_cast<int>(plot_.height);
  }

  void Render(ftxui::Screen& screen) override {
    for (std::size_t y = 0; y < plot_.height; ++y) {
      for (std::size_t x = 0; x < plot_.width; ++x) {
        const PlotCell& cell = plot_.at(x, y);
        const int to_x = box_.x_min + static_cast<int>(x);
        const int to_y = box_.y_min + static_cast<int>(y);
        if (cell.ink == Ink::kNone || to_x > box_.x_max || to_y > box_.y_max) {
          continue;
        }
        ftxui::Pixel& pixel = screen.PixelAt(to_x, to_y);
        pixel.character = cell.glyph;
        if (theme_.color) {
          pixel.foreground_color = color_of(cell.ink);
        }
      }
    }
  }

 private:
  static Color color_of(Ink ink) {
    switch (ink) {
      case Ink::kFloor:
        return Color::Blue;
      case Ink::kCurve:
        return Color::CyanLight;
      case Ink::kLimit:
        return Color::Red;
      case Ink::kCursor:
        return Color::YellowLight;
      case Ink::kNone:
        break;
    }
    return Color::Default;
  }

  Plot plot_;
  Theme theme_;
};

Element labels_view(const Plot& plot) {
  Elements rows;
  for (std::size_t y = 0; y < plot.height; ++y) {
    std::string label;
    if (y == 0) {
      label = format_bytes(plot.high_bytes);
    } else if (y + 1 == plot.height) {
      label = format_bytes(plot.low_bytes);
    } else if (y == plot.height / 2 && plot.height >= 5) {
      const double share = static_cast<double>(plot.height - y) / static_cast<double>(plot.height);
      label = format_bytes(plot.low_bytes + share * (plot.high_bytes - plot.low_bytes));
    }
    rows.push_back(text(fmt::format("{:>{}} ", label, kLabelColumns - 1)));
  }
  return ftxui::vbox(std::move(rows));
}

// The letters of the marks below the moments that they stand for; the gravest wins a place.
Element marks_view(const TimelineModel& timeline, std::size_t width, const Theme& theme) {
  std::string letters(width, ' ');
  std::vector<Tone> tones(width, Tone::kUnknown);
  for (const TimelineMark& mark : timeline.marks) {
    const auto x = plot_column(timeline, width, mark.t_s);
    if (x && (letters[*x] == ' ' || mark.tone >= tones[*x])) {
      letters[*x] = mark.letter;
      tones[*x] = mark.tone;
    }
  }
  Elements parts;
  for (std::size_t begin = 0; begin < width;) {
    std::size_t end = begin + 1;
    while (end < width && tones[end] == tones[begin]) {
      ++end;
    }
    parts.push_back(text(letters.substr(begin, end - begin)) | tone_style(tones[begin], theme));
    begin = end;
  }
  return ftxui::hbox({text(std::string(kLabelColumns, ' ')), ftxui::hbox(std::move(parts))});
}

std::string time_format(double t_s, const std::optional<std::int64_t>& step, bool time_is_steps) {
  const TimeFormat moments(TimeFormat::Seconds::kWhole, time_is_steps);
  const std::string place = t_s < 0.0 ? "" : moments.at(t_s);
  return step && !time_is_steps ? fmt::format("{} step {}", place, *step) : place;
}

// Where the run is younger than the window its first step stands below its first sample.
Element axis_view(const TimelineModel& timeline, std::size_t width, const std::string& legend) {
  const std::string right = time_format(timeline.to_s, timeline.to_step, timeline.time_is_steps);
  const bool is_young = !timeline.points.empty() && timeline.points.front().t_s > timeline.from_s;
  const double from_s = is_young ? timeline.points.front().t_s : timeline.from_s;
  const std::string left = time_format(from_s, timeline.from_step, timeline.time_is_steps);
  const std::size_t column = plot_column(timeline, width, from_s).value_or(0);
  const bool has_room = column + left.size() + right.size() + 1 < width;
  const std::size_t taken = (has_room ? column + left.size() : 0) + right.size();
  const bool has_legend_room =
      !legend.empty() && taken + static_cast<std::size_t>(ftxui::string_width(legend)) + 4 <= width;
  return ftxui::hbox({text(std::string(kLabelColumns, ' ')),
                      text(has_room ? std::string(column, ' ') + left : ""), ftxui::filler(),
                      text(has_legend_room ? legend : ""), ftxui::filler(), text(right)});
}

// As many figures as there is room for, in place of the ends of the axis.
Element cursor_view(const TimelineModel& timeline, std::size_t width, const Theme& theme) {
  std::string line;
  for (const std::string& figure : timeline.at_cursor) {
    const std::string longer = fmt::format("{}{}{}", line, line.empty() ? "" : "  ", figure);
    if (static_cast<std::size_t>(ftxui::string_width(longer)) <= width) {
      line = longer;
    }
  }
  return text(line) | ftxui::bold | ink(Color::YellowLight, theme);
}

std::string range_words(const TimelineModel& timeline) {
  switch (timeline.range) {
    case PlotRange::kFromZero:
      return "from zero";
    case PlotRange::kToLimit:
      return "to the limit";
    case PlotRange::kFit:
      break;
  }
  return "";
}

std::string limit_words(const TimelineModel& timeline) {
  return timeline.limit_bytes ? "limit " + format_bytes(*timeline.limit_bytes) : "";
}

}  // namespace

Element timeline_view(const TimelineModel& timeline, const Layout& layout, const Theme& theme) {
  const auto width = static_cast<std::size_t>(std::max(1, layout.width - kLabelColumns));
  const auto height = static_cast<std::size_t>(std::max(1, layout.plot_lines()));
  Plot plot = draw_timeline(timeline, width, height, theme.utf8);
  Elements rows;
  const bool has_room = layout.width >= 100 && !timeline.last_event.empty();
  const std::string range = range_words(timeline);
  rows.push_back(title_line(timeline.title + (range.empty() ? "" : ", " + range),
                            has_room ? timeline.last_event : limit_words(timeline),
                            timeline.is_focused, theme));
  Element labels = labels_view(plot);
  rows.push_back(
      ftxui::hbox({std::move(labels), std::make_shared<PlotNode>(std::move(plot), theme)}));
  PhaseLine phases;
  if (layout.has_phases_line) {
    phases = draw_phases(timeline, width, theme.utf8);
    rows.push_back(ftxui::hbox({text(fmt::format("{:>{}} ", "phase", kLabelColumns - 1)),
                                text(phases.line) | ink(Color::Magenta, theme)}));
  }
  if (layout.has_marks_line) {
    rows.push_back(marks_view(timeline, width, theme));
  }
  rows.push_back(timeline.cursor_s
                     ? cursor_view(timeline, static_cast<std::size_t>(layout.width), theme)
                     : axis_view(timeline, width, phases.legend));
  return ftxui::vbox(std::move(rows)) | ftxui::size(ftxui::HEIGHT, ftxui::EQUAL, layout.timeline);
}

}  // namespace tidemark::dashboard
