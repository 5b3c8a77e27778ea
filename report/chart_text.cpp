// SPDX-License-Identifier: Apache-2.0
#include "report/chart_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "report/track_words.h"

namespace tidemark::report {
namespace {

constexpr std::size_t kColumns = 66;
constexpr std::size_t kRows = 8;
constexpr std::size_t kLabelColumns = 9;

struct Column {
  double floor_bytes = 0.0;
  double ceiling_bytes = 0.0;
};

// Where a stretch of the run begins, on the axis that patterns are placed on as well.
double begin_of(const tracker::FloorPoint& point, tracker::Axis axis) {
  const auto& begin = axis == tracker::Axis::kSteps ? point.at.step : point.at.t_s;
  return begin.value_or(point.x);
}

// The last stretch ends with the data.
double end_of(const tracker::SeriesVerdict& reading) {
  const auto& end = reading.axis == tracker::Axis::kSteps ? reading.end.step : reading.end.t_s;
  return std::max(end.value_or(reading.floor.back().x),
                  begin_of(reading.floor.back(), reading.axis));
}

class Chart {
 public:
  explicit Chart(const tracker::SeriesVerdict& reading)
      : reading_(reading),
        first_x_(begin_of(reading.floor.front(), reading.axis)),
        span_(end_of(reading) - first_x_) {
    fill_columns();
    choose_range();
  }

  std::string text(Glyphs glyphs) const {
    std::string out;
    for (std::size_t row = kRows; row-- > 0;) {
      out += row_text(row, glyphs);
    }
    out += axis_text();
    out += x_labels();
    return out + legend(glyphs);
  }

 private:
  struct Mark {
    char letter;
    std::size_t column;
    std::string_view means;
  };

  std::size_t column_of(double x) const {
    const double share = std::clamp((x - first_x_) / span_, 0.0, 1.0);
    return static_cast<std::size_t>(std::llround(share * static_cast<double>(kColumns - 1)));
  }

  // A stretch without a point looks like the one before it.
  void fill_columns() {
    std::size_t filled = 0;
    for (const tracker::FloorPoint& point : reading_.floor) {
      const std::size_t at = column_of(begin_of(point, reading_.axis));
      for (; filled > 0 && filled < at; ++filled) {
        columns_[filled] = columns_[filled - 1];
      }
      if (at >= filled) {
        columns_[at] = {point.floor_bytes, point.ceiling_bytes};
        filled = at + 1;
      } else {
        columns_[at].floor_bytes = std::min(columns_[at].floor_bytes, point.floor_bytes);
        columns_[at].ceiling_bytes = std::max(columns_[at].ceiling_bytes, point.ceiling_bytes);
      }
    }
    for (; filled > 0 && filled < kColumns; ++filled) {
      columns_[filled] = columns_[filled - 1];
    }
  }

  // From zero where that leaves something to see, and never so close that noise looks like growth.
  void choose_range() {
    constexpr double kLeastShare = 0.1;  // of the height, for what changes
    double lowest = columns_[0].floor_bytes;
    for (const Column& column : columns_) {
      lowest = std::min(lowest, column.floor_bytes);
      high_ = std::max(high_, column.ceiling_bytes);
    }
    const double changes = std::max(high_ - lowest, kLeastShare * high_);
    low_ = high_ - 1.2 * changes;
    if (low_ < 0.4 * high_) {
      low_ = 0.0;
    }
  }

  std::string row_text(std::size_t row, Glyphs glyphs) const {
    const bool utf8 = glyphs == Glyphs::kUtf8;
    const double height = (high_ - low_) / static_cast<double>(kRows);
    const double middle = low_ + height * (static_cast<double>(row) + 0.5);
    std::string label;
    if (row == kRows - 1) {
      label = format_bytes(high_);
    } else if (row == 0) {
      label = format_bytes(low_);
    } else if (row == kRows / 2) {
      label = format_bytes(low_ + height * static_cast<double>(row));
    }
    std::string out = fmt::format("{:>{}} {}", label, kLabelColumns, utf8 ? "│" : "|");
    for (const Column& column : columns_) {
      if (column.floor_bytes >= middle || row == 0) {
        out += utf8 ? "█" : "#";
      } else if (column.ceiling_bytes >= middle) {
        out += utf8 ? "░" : ".";
      } else {
        out += ' ';
      }
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + '\n';
  }

  std::vector<Mark> marks() const {
    std::vector<Mark> found;
    const auto add = [&](char letter, const tracker::Moment& at, std::string_view means) {
      const auto& x = reading_.axis == tracker::Axis::kSteps ? at.step : at.t_s;
      if (x && *x >= first_x_ && *x <= first_x_ + span_) {
        found.push_back({letter, column_of(*x), means});
      }
    };
    if (const auto* warmup = reading_.find(tracker::PatternKind::kWarmup)) {
      add('w', warmup->to, "warm-up ended");
    }
    if (reading_.allowance_end) {
      add('a', *reading_.allowance_end, "allowance ends");
    }
    if (const auto* growth = reading_.find(tracker::PatternKind::kGrowth)) {
      add('G', growth->from, "growth begins");
    }
    if (const auto* leak = reading_.find(tracker::PatternKind::kLeak)) {
      add('L', leak->from, "leak begins");
    }
    return found;
  }

  std::string axis_text() const {
    std::string line(kColumns, '-');
    for (const Mark& mark : marks()) {
      // Two in one place stand side by side.
      std::size_t at = mark.column;
      while (at + 1 < kColumns && line[at] != '-') {
        ++at;
      }
      line[at] = mark.letter;
    }
    return fmt::format("{:>{}} +{}\n", "", kLabelColumns, line);
  }

  std::string x_labels() const {
    const std::string left = place_text(reading_.begin, reading_.axis);
    const std::string right = place_text(reading_.end, reading_.axis);
    return fmt::format("{:>{}}  {}{:>{}}\n", "", kLabelColumns, left, right,
                       kColumns - std::min(kColumns, left.size()));
  }

  std::string legend(Glyphs glyphs) const {
    std::string text = glyphs == Glyphs::kUtf8 ? "█ floor  ░ ceiling" : "# floor  . ceiling";
    for (const Mark& mark : marks()) {
      text += fmt::format("  {} {}", mark.letter, mark.means);
    }
    return fmt::format("{:>{}}  {}\n", "", kLabelColumns, text);
  }

  const tracker::SeriesVerdict& reading_;
  double first_x_;
  double span_;
  std::array<Column, kColumns> columns_{};
  double low_ = 0.0;
  double high_ = 0.0;
};

using tracker::Cell;

constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kAsciiBars{"_", ".", ":", "-", "=", "+", "*", "#"};

// The cells between the first step and the last; all of them where no step is known.
std::span<const Cell> while_training(std::span<const Cell> cells) {
  const auto has_step = [](const Cell& cell) { return !std::isnan(cell.step); };
  const auto first = std::find_if(cells.begin(), cells.end(), has_step);
  if (first == cells.end()) {
    return cells;
  }
  const double last_step = cells.back().step;
  const auto end =
      std::find_if(first, cells.end(), [&](const Cell& cell) { return cell.step >= last_step; });
  return {first, end};
}

}  // namespace

Glyphs glyphs_of_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    // Nothing of ours changes the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') {
      continue;
    }
    const std::string_view locale(value);
    for (const std::string_view encoding : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
      if (locale.find(encoding) != std::string_view::npos) {
        return Glyphs::kUtf8;
      }
    }
    return Glyphs::kAscii;  // the first that is set decides
  }
  return Glyphs::kAscii;
}

std::string chart_text(const tracker::SeriesVerdict& reading, Glyphs glyphs) {
  if (reading.floor.size() < 3 || !(begin_of(reading.floor.back(), reading.axis) >
                                    begin_of(reading.floor.front(), reading.axis))) {
    return "";
  }
  return Chart(reading).text(glyphs);
}

std::vector<double> sparkline_values(const tracker::Series& series, std::size_t columns) {
  const std::span<const Cell> cells = while_training(series.cells());
  if (cells.empty() || columns == 0) {
    return {};
  }
  const bool has_time = !std::isnan(cells.front().t_s);
  const auto place = [&](const Cell& cell) { return has_time ? cell.t_s : cell.step; };
  const double start = place(cells.front());
  const double width = (place(cells.back()) - start) / static_cast<double>(columns);
  std::vector<double> highest(columns, -1.0);
  for (const Cell& cell : cells) {
    const double at = width > 0.0 ? (place(cell) - start) / width : 0.0;
    const std::size_t column = std::min(columns - 1, static_cast<std::size_t>(at));
    highest[column] = std::max(highest[column], cell.max_bytes);
  }
  for (std::size_t i = 1; i < columns; ++i) {
    highest[i] = highest[i] < 0.0 ? highest[i - 1] : highest[i];
  }
  return highest;
}

std::string sparkline_text(std::span<const double> bytes, Glyphs glyphs) {
  const auto& characters = glyphs == Glyphs::kUtf8 ? kBars : kAsciiBars;
  const double top = bytes.empty() ? 0.0 : *std::max_element(bytes.begin(), bytes.end());
  std::string text;
  for (const double value : bytes) {
    const double share = top > 0.0 ? std::clamp(value / top, 0.0, 1.0) : 0.0;
    const auto level =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(characters.size())));
    text += characters[std::max<std::size_t>(level, 1) - 1];
  }
  return text;
}

std::string change_sparkline(std::span<const double> bytes, std::size_t columns, Glyphs glyphs) {
  const std::size_t shown = std::min(columns, bytes.size());
  if (shown == 0) {
    return "";
  }
  const auto& characters = glyphs == Glyphs::kUtf8 ? kBars : kAsciiBars;
  const auto [low, high] = std::minmax_element(bytes.begin(), bytes.end());
  const double range = std::max(*high - *low, 0.02 * *high);
  std::string text;
  for (std::size_t x = 0; x < shown; ++x) {
    const double share = range > 0.0 ? (bytes[x * bytes.size() / shown] - *low) / range : 0.0;
    text += characters[static_cast<std::size_t>(std::clamp(share * 8.0, 0.0, 7.0))];
  }
  return text;
}

}  // namespace tidemark::report
