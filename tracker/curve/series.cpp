// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/series.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tidemark::tracker {
namespace {

// Samples that are put in their places together. Few, because a profile has thousands of series.
constexpr std::size_t kMostPending = 32;

bool comes_before(const Cell& a, const Cell& b) { return a.place() < b.place(); }

void absorb(Cell& into, const Cell& next) {
  into.min_bytes = std::min(into.min_bytes, next.min_bytes);
  into.max_bytes = std::max(into.max_bytes, next.max_bytes);
  into.sum_bytes += next.sum_bytes;
  into.count += next.count;
  if (std::isnan(into.step)) {
    into.step = next.step;
  }
}

// Each run of neighbours with together at most `per_cell` samples becomes one cell.
void merge_neighbours(std::vector<Cell>& cells, std::uint64_t per_cell) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    if (cells[kept].count + cells[i].count <= per_cell) {
      absorb(cells[kept], cells[i]);
    } else {
      cells[++kept] = cells[i];
    }
  }
  cells.resize(std::min(cells.size(), kept + 1));
}

}  // namespace

Series::Series(std::size_t max_cells) : max_cells_(std::max<std::size_t>(max_cells, 16)) {}

void Series::add(double t_s, double step, double bytes, double unseen_bytes) {
  t_s = std::abs(t_s) <= kFarthestPlace ? t_s : kUnknown;
  step = std::abs(step) <= kFarthestPlace ? step : kUnknown;
  const double place = std::isnan(t_s) ? step : t_s;
  if (std::isnan(place) || !(bytes >= 0.0 && bytes <= kMostBytes)) {
    ++dropped_;
    return;
  }
  ++samples_;
  out_of_order_ += place < last_place_ ? 1U : 0U;
  last_place_ = std::max(last_place_, place);
  const double peak = std::min(bytes + std::max(0.0, unseen_bytes), kMostBytes);
  pending_.push_back({t_s, step, bytes, peak, bytes, 1});
  if (pending_.size() >= (max_cells_ < kDefaultCells ? kMostPending : max_cells_)) {
    settle();
  }
}

const std::vector<Cell>& Series::cells() const {
  settle();
  return cells_;
}

// Sorting by chunks keeps the whole linear: a file that is read backwards costs one merge of two
// bounded lists per chunk.
void Series::settle() const {
  if (pending_.empty()) {
    return;
  }
  if (!std::is_sorted(pending_.begin(), pending_.end(), comes_before)) {
    std::stable_sort(pending_.begin(), pending_.end(), comes_before);
  }
  const auto middle = static_cast<std::ptrdiff_t>(cells_.size());
  if (const std::size_t wanted = cells_.size() + pending_.size(); wanted > cells_.capacity()) {
    // Never twice the cells, which doubling might come to.
    cells_.reserve(std::min(std::max(wanted, 2 * cells_.capacity()),
                            max_cells_ + std::max(pending_.size(), kMostPending)));
  }
  cells_.insert(cells_.end(), pending_.begin(), pending_.end());
  pending_.clear();
  if (middle > 0 && comes_before(cells_[static_cast<std::size_t>(middle)],
                                 cells_[static_cast<std::size_t>(middle) - 1])) {
    std::inplace_merge(cells_.begin(), cells_.begin() + middle, cells_.end(), comes_before);
  }
  merge_neighbours(cells_, per_cell_);
  while (cells_.size() > max_cells_) {
    per_cell_ *= 2;
    merge_neighbours(cells_, per_cell_);
  }
}

}  // namespace tidemark::tracker
