// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tracker/curve/curve.h"
#include "tracker/curve/cycles.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::tracker {

// The low-water mark of a curve, block by block. A block is long enough to see the curve come back
// from an excursion, and there are at most kMostBlocks.
struct Floor {
  static constexpr std::size_t kMostBlocks = 48;

  std::vector<FloorPoint> points;
  std::vector<double> x;  // the same, as columns for the fits
  std::vector<double> bytes;
  std::vector<double> starts;  // place of the first sample of each block
  double block_width = 0.0;    // on the axis
};

Floor make_floor(const Curve& curve, const Cycles& cycles);

}  // namespace tidemark::tracker
