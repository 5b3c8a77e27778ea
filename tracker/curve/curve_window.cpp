// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/curve_window.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tidemark::tracker {

std::optional<Levels> levels_in(const Series& series, const Window& window) {
  const std::vector<Cell>& cells = series.cells();
  const auto first = std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) {
    return cell.place() >= window.from && cell.place() <= window.to;
  });
  const auto end =
      std::find_if(first, cells.end(), [&](const Cell& cell) { return cell.place() > window.to; });
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
                       [](double at, const Cell& cell) { return at < cell.place(); });
  if (cells.empty()) {
    return nullptr;
  }
  return after == cells.begin() ? &cells.front() : &*(after - 1);
}

const Cell* cell_after(const Series& series, double place) {
  const std::vector<Cell>& cells = series.cells();
  const auto it = std::lower_bound(cells.begin(), cells.end(), place,
                                   [](const Cell& cell, double at) { return cell.place() < at; });
  if (cells.empty()) {
    return nullptr;
  }
  return it == cells.end() ? &cells.back() : &*it;
}

namespace {

constexpr double kOneJumpShare = 0.7;
constexpr double kEvenShare = 0.22;  // of the growth, in each third
constexpr double kStillComing = 0.05;
constexpr double kSlower = 1.3;  // one third of the window against the next

std::vector<Cell> cells_in(const Series& series, const Window& window) {
  std::vector<Cell> inside;
  for (const Cell& cell : series.cells()) {
    if (cell.place() >= window.from && cell.place() <= window.to) {
      inside.push_back(cell);
    }
  }
  return inside;
}

// The index at which the largest rise ended; 0: none.
std::size_t steepest(const std::vector<Cell>& cells) {
  std::size_t best = 0;
  double height = 0.0;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const double rise = cells[i].min_bytes - cells[i - 1].min_bytes;
    if (rise > height) {
      height = rise;
      best = i;
    }
  }
  return best;
}

// Low-water mark around a share of the window.
double level_at(const std::vector<Cell>& cells, double share) {
  const std::size_t reach = std::max<std::size_t>(cells.size() / 30, 1);
  const auto middle = static_cast<std::size_t>(share * static_cast<double>(cells.size() - 1));
  const std::size_t first = middle > reach ? middle - reach : 0;
  const std::size_t last = std::min(middle + reach + 1, cells.size());
  double level = cells[first].min_bytes;
  for (std::size_t i = first; i < last; ++i) {
    level = std::min(level, cells[i].min_bytes);
  }
  return level;
}

}  // namespace

GrowthForm form_of(const Series& series, const Window& window) {
  const std::vector<Cell> cells = cells_in(series, window);
  if (cells.size() < 2) {
    return GrowthForm::kNone;
  }
  const double grown = cells.back().min_bytes - cells.front().min_bytes;
  const std::size_t jump = steepest(cells);
  if (grown <= 0.0 || jump == 0) {
    return GrowthForm::kNone;
  }
  if (cells[jump].min_bytes - cells[jump - 1].min_bytes >= kOneJumpShare * grown) {
    return GrowthForm::kOneJump;
  }
  const double low = level_at(cells, 0.0);
  const double third = level_at(cells, 1.0 / 3.0);
  const double two_thirds = level_at(cells, 2.0 / 3.0);
  const double high = level_at(cells, 1.0);
  const double first = third - low;
  const double second = two_thirds - third;
  const double last = high - two_thirds;
  if (std::min({first, second, last}) >= kEvenShare * (high - low)) {
    return GrowthForm::kStraight;
  }
  // A straight line that ended is not slowing: it stands still in its last third.
  const bool slowing =
      first > kSlower * second && second > kSlower * last && last >= kStillComing * (high - low);
  return slowing ? GrowthForm::kSlowing : GrowthForm::kNone;
}

std::optional<Moment> largest_rise(const Series& series, const Window& window) {
  const std::vector<Cell> cells = cells_in(series, window);
  const std::size_t at = steepest(cells);
  if (at == 0) {
    return std::nullopt;
  }
  Moment moment;
  if (!std::isnan(cells[at].t_s)) {
    moment.t_s = cells[at].t_s;
  }
  if (!std::isnan(cells[at].step)) {
    moment.step = cells[at].step;
  }
  return moment;
}

bool is_sawtooth(const Series& series, const Pattern& spikes) {
  const std::vector<Cell>& cells = series.cells();
  std::size_t falls = 0;
  std::size_t jumps = 0;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const double change = cells[i].mean_bytes() - cells[i - 1].mean_bytes();
    falls += change < -0.5 * spikes.height_bytes ? 1U : 0U;
    jumps += change > 0.3 * spikes.height_bytes ? 1U : 0U;
  }
  return spikes.count >= 3 && 2 * falls >= spikes.count && 4 * jumps <= spikes.count;
}

}  // namespace tidemark::tracker
