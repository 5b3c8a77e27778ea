// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tests/bench/accuracy/random.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::bench {

// When a run was looked at. Without unknown values: the curve decides what it shows of it.
struct Sampling {
  tracker::Axis axis = tracker::Axis::kTime;
  bool has_time = true;
  std::vector<double> t_s;
  std::vector<double> step;       // empty when there are none
  double seconds_per_unit = 1.0;  // mean pace of the axis

  const std::vector<double>& xs() const { return axis == tracker::Axis::kSteps ? step : t_s; }
};

// `points` looks, every 0.5 s to 2 min; a third of them by an irregular clock, a fifth with gaps.
// Four in ten know time only, four in ten time and steps, two in ten steps only.
Sampling draw_sampling(std::size_t points, Random& random);

}  // namespace tidemark::bench
