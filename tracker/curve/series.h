// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tidemark::tracker {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Neighbouring samples of a series; at first just one. Time and step are those of its first sample.
struct Cell {
  double t_s = kUnknown;
  double step = kUnknown;
  double min_bytes = 0.0;
  double max_bytes = 0.0;
  double sum_bytes = 0.0;
  std::uint64_t count = 0;

  double mean_bytes() const { return sum_bytes / static_cast<double>(count); }
  // Its time; without one its step.
  double place() const { return std::isnan(t_s) ? step : t_s; }
};

// One memory curve, in a bounded amount of memory: when it has more samples than `max_cells`,
// neighbours are merged pairwise, and minima and maxima are kept. So a day and a minute cost the
// same, and a live look at a run gives the verdict that its recording gives later.
//
// Samples may come in any order. Not thread-safe.
class Series {
 public:
  static constexpr std::size_t kDefaultCells = 4096;

  explicit Series(std::size_t max_cells = kDefaultCells);

  // No machine has more, and no run is longer. Squares and products of these are still numbers.
  static constexpr double kMostBytes = 0x1p62;
  static constexpr double kFarthestPlace = 1e19;

  // `t_s`, `step`: kUnknown where unknown; one of them is known. A sample that is no amount of
  // memory, or has no place on either axis, is dropped and counted. `unseen_bytes`: how much more
  // there was for a moment since the sample before.
  void add(double t_s, double step, double bytes, double unseen_bytes = 0.0);

  // In the order of time, or of steps where no time is known. Samples of one instant are neighbours
  // in the order in which they came.
  const std::vector<Cell>& cells() const;

  // The same curve; each cell has the step that `step_at` gives for its time.
  template <typename StepAt>
  Series with_steps(const StepAt& step_at) const {
    settle();
    Series copy = *this;
    for (Cell& cell : copy.cells_) {
      cell.step = step_at(cell.t_s);
    }
    return copy;
  }

  std::uint64_t samples() const { return samples_; }  // without the dropped ones
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t out_of_order() const { return out_of_order_; }
  bool empty() const { return samples_ == 0; }

 private:
  void settle() const;

  std::size_t max_cells_;
  mutable std::vector<Cell> cells_;    // sorted
  mutable std::vector<Cell> pending_;  // since the last settle()
  mutable std::uint64_t per_cell_ = 1;
  double last_place_ = -std::numeric_limits<double>::infinity();
  std::uint64_t samples_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t out_of_order_ = 0;
};

}  // namespace tidemark::tracker
