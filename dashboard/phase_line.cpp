// SPDX-License-Identifier: Apache-2.0
#include "dashboard/phase_line.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <ftxui/screen/string.hpp>

#include "dashboard/timeline_plot.h"

namespace tidemark::dashboard {
namespace {

constexpr std::array<std::string_view, 3> kShades = {"▒", "░", "▓"};
constexpr std::array<std::string_view, 3> kAsciiShades = {":", ".", "%"};

std::string shade_of(const TimelinePhase& phase, bool utf8) {
  return std::string((utf8 ? kShades : kAsciiShades)[phase.kind % kShades.size()]);
}

// What is in a column: the second half of a wide character is an empty string.
using Columns = std::vector<std::string>;

Columns columns_of(const std::string& name, bool utf8) {
  Columns columns = ftxui::Utf8ToGlyphs(name);
  if (!utf8) {
    for (std::string& column : columns) {
      const bool is_ascii = column.size() == 1 && static_cast<unsigned char>(column[0]) < 0x80;
      column = is_ascii ? column : "?";
    }
  }
  return columns;
}

bool is_wide(const Columns& columns, std::size_t x) {
  return x + 1 < columns.size() && columns[x + 1].empty();
}

std::string joined(const Columns& columns) {
  std::string text;
  for (const std::string& column : columns) {
    text += column;
  }
  return text;
}

// A line of columns with the shade below each of them.
class Line {
 public:
  explicit Line(std::size_t width) : columns_(width, " "), shades_(width, " ") {}

  // A shade first, then the name, as far as it fits.
  void draw(std::size_t from, std::size_t end, const std::string& shade, const Columns& name) {
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

  bool shows(std::size_t from, const Columns& name) const {
    return from + 1 + name.size() <= columns_.size() &&
           std::equal(name.begin(), name.end(),
                      columns_.begin() + static_cast<std::ptrdiff_t>(from + 1));
  }

  std::string text() const { return joined(columns_); }

 private:
  Columns columns_;
  Columns shades_;
};

}  // namespace

PhaseLine draw_phases(const TimelineModel& timeline, std::size_t width, bool utf8) {
  struct Stretch {
    const TimelinePhase* phase;
    std::size_t from;
    Columns name;
  };
  Line line(width);
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
                                   shade_of(*stretch.phase, utf8), joined(stretch.name));
    }
  }
  return result;
}

}  // namespace tidemark::dashboard
