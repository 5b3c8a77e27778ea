// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/curve_levels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tidemark::tracker {

double place_of(const Cell& cell) { return std::isnan(cell.t_s) ? cell.step : cell.t_s; }

std::optional<Levels> levels_in(const Series& series, const Window& window) {
  const std::vector<Cell>& cells = series.cells();
  const auto first = std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) {
    return place_of(cell) >= window.from && place_of(cell) <= window.to;
  });
  const auto end = std::find_if(first, cells.end(),
                                [&](const Cell& cell) { return place_of(cell) > window.to; });
  if (first == end) {
    return std::nullopt;
  }
  const std::ptrdiff_t tenth = std::max<std::ptrdiff_t>((end - first) / 10, 1);
  const auto lower = [](const Cell& a, const Cell& b) { return a.min_bytes < b.min_bytes; };
  Levels levels;
  levels.first_bytes = std::min_element(first, first + tenth, lower)->min_bytes;
  levels.last_bytes = std::min_element(end - tenth, end, lower)->min_bytes;
  levels.max_bytes = std::max_element(first, end, [](const Cell& a, const Cell& b) {
                       return a.max_bytes < b.max_bytes;
                     })->max_bytes;
  return levels;
}

std::optional<double> growth_in(const Series& series, const Window& window) {
  const std::optional<Levels> levels = levels_in(series, window);
  return levels ? std::optional(levels->growth_bytes()) : std::nullopt;
}

const Cell* cell_before(const Series& series, double place) {
  const std::vector<Cell>& cells = series.cells();
  const auto after =
      std::upper_bound(cells.begin(), cells.end(), place,
                       [](double at, const Cell& cell) { return at < place_of(cell); });
  if (cells.empty()) {
    return nullptr;
  }
  return after == cells.begin() ? &cells.front() : &*(after - 1);
}

const Cell* cell_after(const Series& series, double place) {
  const std::vector<Cell>& cells = series.cells();
  const auto it = std::lower_bound(cells.begin(), cells.end(), place,
                                   [](const Cell& cell, double at) { return place_of(cell) < at; });
  if (cells.empty()) {
    return nullptr;
  }
  return it == cells.end() ? &cells.back() : &*it;
}

}  // namespace tidemark::tracker
