// SPDX-License-Identifier: Apache-2.0
#include "dashboard/timeline_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <ftxui/screen/string.hpp>

namespace tidemark::dashboard {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Lowest and highest value in a column of dots; NaN where there is none.
struct Column {
  double low = kNone;
  double high = kNone;
  double floor = kNone;

  bool is_empty() const { return std::isnan(low); }
  void include(double from, double to) {
    low = is_empty() ? from : std::min(low, from);
    high = std::isnan(high) ? to : std::max(high, to);
  }
};

class Raster {
 public:
  Raster(const TimelineModel& timeline, std::size_t width, std::size_t height, bool utf8)
      : timeline_(timeline),
        utf8_(utf8),
        dots_x_(utf8 ? 2 : 1),
        dots_y_(utf8 ? 4 : 1),
        columns_(width * dots_x_) {
    plot_.width = width;
    plot_.height = height;
    plot_.cells.resize(width * height);
  }

  Plot draw() {
    if (columns_.empty() || plot_.height == 0 || timeline_.to_s <= timeline_.from_s) {
      return plot_;
    }
    fill_columns();
    fill_floor();
    choose_range();
    for (std::size_t y = 0; y < plot_.height; ++y) {
      for (std::size_t x = 0; x < plot_.width; ++x) {
        draw_cell(x, y);
      }
    }
    draw_limit();
    draw_cursor();
    return plot_;
  }

 private:
  // May lie outside.
  double place(double t_s) const {
    return (t_s - timeline_.from_s) / (timeline_.to_s - timeline_.from_s) *
           static_cast<double>(columns_.size());
  }

  std::size_t clamp_column(double at) const {
    return static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(columns_.size() - 1)));
  }

  // A value holds until the next one.
  void fill_columns() {
    const auto& points = timeline_.points;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t begin = clamp_column(place(points[i].t_s));
      const std::size_t end =
          i + 1 < points.size() ? clamp_column(place(points[i + 1].t_s)) : begin;
      columns_[begin].include(points[i].min_bytes, points[i].max_bytes);
      for (std::size_t x = begin + 1; x <= end; ++x) {
        columns_[x].include(points[i].min_bytes, points[i].min_bytes);
      }
    }
  }

  void fill_floor() {
    const auto& floor = timeline_.floor;
    for (std::size_t i = 0; i < floor.size(); ++i) {
      const std::size_t begin = clamp_column(place(floor[i].t_s));
      const std::size_t end =
          i + 1 < floor.size() ? clamp_column(place(floor[i + 1].t_s)) : columns_.size() - 1;
      for (std::size_t x = begin; x <= end; ++x) {
        if (!columns_[x].is_empty()) {
          const double value = std::min(floor[i].min_bytes, columns_[x].low);
          columns_[x].floor =
              std::isnan(columns_[x].floor) ? value : std::min(columns_[x].floor, value);
        }
      }
    }
  }

  // Never so close that noise looks like growth.
  void choose_range() {
    constexpr double kLimitInSight = 1.3;  // a limit within this factor is drawn
    double lowest = std::numeric_limits<double>::infinity();
    double highest = 0.0;
    for (const Column& column : columns_) {
      if (!column.is_empty()) {
        lowest = std::min({lowest, column.low, std::isnan(column.floor) ? lowest : column.floor});
        highest = std::max(highest, column.high);
      }
    }
    lowest = std::min(lowest, highest);
    const double limit = timeline_.limit_bytes.value_or(0.0);
    const bool shows_limit =
        timeline_.range == PlotRange::kToLimit || (limit > 0.0 && limit <= kLimitInSight * highest);
    const double top = shows_limit ? std::max(highest, limit) : highest;
    is_flat_ = highest - lowest < kLeastShare * highest;
    if (timeline_.range == PlotRange::kFit) {
      fit_range(lowest, highest, top);
    } else {
      plot_.low_bytes = 0.0;
      plot_.high_bytes = std::max(
          timeline_.range == PlotRange::kFromZero && !shows_limit ? kHeadroom * top : top, 1.0);
    }
  }

  // From zero where that leaves something to see; what is flat in the middle.
  void fit_range(double lowest, double highest, double top) {
    if (is_flat_ && top == highest) {
      const double middle = (lowest + highest) / 2.0;
      plot_.low_bytes = middle * (1.0 - kLeastShare);
      plot_.high_bytes = std::max(middle * (1.0 + kLeastShare), 1.0);
      return;
    }
    plot_.high_bytes = std::max(top, 1.0);
    plot_.low_bytes = top - 1.2 * std::max(top - lowest, kLeastShare * top);
    if (plot_.low_bytes < 0.4 * top) {
      plot_.low_bytes = 0.0;
    }
  }

  // Lines of dots from the bottom: the one that holds `bytes`.
  std::ptrdiff_t level(double bytes) const {
    const double share =
        (bytes - plot_.low_bytes) / std::max(1.0, plot_.high_bytes - plot_.low_bytes);
    const auto levels = static_cast<double>(plot_.height * dots_y_);
    return static_cast<std::ptrdiff_t>(std::clamp(std::floor(share * levels), 0.0, levels - 1.0));
  }

  void draw_cell(std::size_t x, std::size_t y) {
    unsigned pattern = 0;
    bool has_curve = false;
    bool has_surface = false;
    for (std::size_t dx = 0; dx < dots_x_; ++dx) {
      const Column& column = columns_[x * dots_x_ + dx];
      if (column.is_empty()) {
        continue;
      }
      const std::ptrdiff_t low = level(column.low);
      const std::ptrdiff_t high = level(column.high);
      const std::ptrdiff_t floor = std::isnan(column.floor) ? -1 : level(column.floor);
      for (std::size_t dy = 0; dy < dots_y_; ++dy) {
        const auto at = static_cast<std::ptrdiff_t>((plot_.height - 1 - y) * dots_y_ + dy);
        const bool is_curve = at >= low && at <= high;
        // Below its surface the water is thin, so that the waves stand out.
        const bool is_water = at < floor && !is_flat_ && (!utf8_ || (dx == 0 ? dy == 0 : dy == 2));
        if (is_curve || at == floor || is_water) {
          pattern |= dot_bit(dx, dy);
        }
        has_curve = has_curve || (is_curve && at > floor);
        has_surface = has_surface || at == floor;
      }
    }
    if (pattern == 0) {
      return;
    }
    PlotCell& cell = plot_.cells[y * plot_.width + x];
    cell.ink = has_curve ? Ink::kCurve : Ink::kFloor;
    if (utf8_) {
      cell.glyph = braille(pattern);
    } else {
      cell.glyph.assign(1, has_curve ? '*' : has_surface ? '#' : '.');
    }
  }

  // https://www.unicode.org/charts/PDF/U2800.pdf: dots 1-2-3-7 left, 4-5-6-8 right, from the top.
  static unsigned dot_bit(std::size_t dx, std::size_t dy_from_bottom) {
    constexpr std::array<std::array<unsigned, 4>, 2> kBits{
        {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}};
    return kBits[dx][dy_from_bottom];
  }

  static std::string braille(unsigned pattern) {
    return {'\xe2', static_cast<char>(0xA0U + (pattern >> 6U)),
            static_cast<char>(0x80U + (pattern & 0x3FU))};
  }

  void draw_limit() {
    if (!timeline_.limit_bytes || *timeline_.limit_bytes > plot_.high_bytes) {
      return;
    }
    const auto row =
        plot_.height - 1 - static_cast<std::size_t>(level(*timeline_.limit_bytes)) / dots_y_;
    for (std::size_t x = 0; x < plot_.width; ++x) {
      PlotCell& cell = plot_.cells[row * plot_.width + x];
      if (cell.ink == Ink::kNone) {
        cell = {utf8_ ? "╌" : "-", Ink::kLimit};
      }
    }
  }

  void draw_cursor() {
    const auto x = timeline_.cursor_s ? plot_column(timeline_, plot_.width, *timeline_.cursor_s)
                                      : std::nullopt;
    for (std::size_t y = 0; x && y < plot_.height; ++y) {
      PlotCell& cell = plot_.cells[y * plot_.width + *x];
      const bool is_curve = cell.ink == Ink::kCurve;
      cell = {is_curve ? cell.glyph : utf8_ ? "│" : "|", Ink::kCursor};
    }
  }

  // The least share of the height for what changes; less is flat.
  static constexpr double kLeastShare = 0.1;
  static constexpr double kHeadroom = 1.1;  // above a curve that is drawn from zero

  const TimelineModel& timeline_;
  const bool utf8_;
  const std::size_t dots_x_;
  const std::size_t dots_y_;
  std::vector<Column> columns_;
  bool is_flat_ = false;  // in this window
  Plot plot_;
};

constexpr std::array<std::string_view, 3> kShades = {"▒", "░", "▓"};
constexpr std::array<std::string_view, 3> kAsciiShades = {":", ".", "%"};

std::string shade_of(const TimelinePhase& phase, bool utf8) {
  return std::string((utf8 ? kShades : kAsciiShades)[phase.kind % kShades.size()]);
}

// What is in a column: the second half of a wide character is an empty string.
using PhaseColumns = std::vector<std::string>;

PhaseColumns columns_of(const std::string& name, bool utf8) {
  PhaseColumns columns = ftxui::Utf8ToGlyphs(name);
  if (!utf8) {
    for (std::string& column : columns) {
      const bool is_ascii = column.size() == 1 && static_cast<unsigned char>(column[0]) < 0x80;
      column = is_ascii ? column : "?";
    }
  }
  return columns;
}

bool is_wide(const PhaseColumns& columns, std::size_t x) {
  return x + 1 < columns.size() && columns[x + 1].empty();
}

std::string joined_columns(const PhaseColumns& columns) {
  std::string text;
  for (const std::string& column : columns) {
    text += column;
  }
  return text;
}

// A line of columns with the shade below each of them.
class PhaseDrawing {
 public:
  explicit PhaseDrawing(std::size_t width) : columns_(width, " "), shades_(width, " ") {}

  // A shade first, then the name, as far as it fits.
  void draw(std::size_t from, std::size_t end, const std::string& shade, const PhaseColumns& name) {
    // What is half covered is gone.
    if (from > 0 && columns_[from].empty()) {
      columns_[from - 1] = shades_[from - 1];
    }
    if (end < columns_.size() && columns_[end].empty()) {
      columns_[end] = shades_[end];
    }
    std::fill(columns_.begin() + static_cast<std::ptrdiff_t>(from),
              columns_.begin() + static_cast<std::ptrdiff_t>(end), shade);
    std::fill(shades_.begin() + static_cast<std::ptrdiff_t>(from),
              shades_.begin() + static_cast<std::ptrdiff_t>(end), shade);
    for (std::size_t i = 0; i < name.size() && from + 1 + i < end; ++i) {
      const bool is_cut = is_wide(name, i) && from + 2 + i >= end;
      columns_[from + 1 + i] = is_cut ? shade : name[i];
    }
  }

  bool shows(std::size_t from, const PhaseColumns& name) const {
    return from + 1 + name.size() <= columns_.size() &&
           std::equal(name.begin(), name.end(),
                      columns_.begin() + static_cast<std::ptrdiff_t>(from + 1));
  }

  std::string text() const { return joined_columns(columns_); }

 private:
  PhaseColumns columns_;
  PhaseColumns shades_;
};

}  // namespace

Plot draw_timeline(const TimelineModel& timeline, std::size_t width, std::size_t height,
                   bool utf8) {
  return Raster(timeline, width, height, utf8).draw();
}

std::optional<std::size_t> plot_column(const TimelineModel& timeline, std::size_t width,
                                       double t_s) {
  if (width == 0 || t_s < timeline.from_s || t_s > timeline.to_s ||
      timeline.to_s <= timeline.from_s) {
    return std::nullopt;
  }
  const double share = (t_s - timeline.from_s) / (timeline.to_s - timeline.from_s);
  return std::min(width - 1, static_cast<std::size_t>(share * static_cast<double>(width)));
}

PhaseLine draw_phases(const TimelineModel& timeline, std::size_t width, bool utf8) {
  struct Stretch {
    const TimelinePhase* phase;
    std::size_t from;
    PhaseColumns name;
  };
  PhaseDrawing line(width);
  std::vector<Stretch> stretches;
  for (const TimelinePhase& phase : timeline.phases) {
    const auto from =
        plot_column(timeline, width, std::clamp(phase.from_s, timeline.from_s, timeline.to_s));
    const auto last =
        plot_column(timeline, width, std::clamp(phase.to_s, timeline.from_s, timeline.to_s));
    if (!from || !last) {
      continue;
    }
    stretches.push_back({&phase, *from, columns_of(phase.name, utf8)});
    line.draw(*from, *last + 1, shade_of(phase, utf8), stretches.back().name);
  }
  std::set<std::string_view> shown;
  for (const Stretch& stretch : stretches) {
    if (line.shows(stretch.from, stretch.name)) {
      shown.insert(stretch.phase->name);
    }
  }
  PhaseLine result{line.text(), ""};
  for (const Stretch& stretch : stretches) {
    if (shown.insert(stretch.phase->name).second) {
      result.legend += fmt::format("{}{} {}", result.legend.empty() ? "" : "  ",
                                   shade_of(*stretch.phase, utf8), joined_columns(stretch.name));
    }
  }
  return result;
}

}  // namespace tidemark::dashboard
