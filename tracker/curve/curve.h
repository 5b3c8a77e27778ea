// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tracker/curve/series.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::tracker {

struct CurvePoint {
  double x = 0.0;  // on the judged axis
  double t_s = kUnknown;
  double step = kUnknown;
  double min_bytes = 0.0;
  double max_bytes = 0.0;
  double mean_bytes = 0.0;
  std::uint64_t samples = 1;
};

// A series made ready to be judged.
struct Curve {
  Axis axis = Axis::kTime;
  std::vector<CurvePoint> points;   // x strictly rising
  std::optional<Pattern> teardown;  // what was cut off at the end
  std::uint64_t dips_repaired = 0;

  double span() const { return points.empty() ? 0.0 : points.back().x - points.front().x; }
};

// Chooses the axis (steps where they are known), joins points of one place, repairs the dips of
// samplers that missed a process, and cuts off the teardown.
Curve prepare(const Series& series);

Moment moment_of(const CurvePoint& point);

}  // namespace tidemark::tracker
