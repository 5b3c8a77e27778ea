// SPDX-License-Identifier: Apache-2.0
#include "report/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace tidemark::report {
namespace {

using tracker::Cell;

constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kMarks{"_", ".", ":", "-", "=", "+", "*", "#"};

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
  const auto& characters = glyphs == Glyphs::kUtf8 ? kBars : kMarks;
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

}  // namespace tidemark::report
