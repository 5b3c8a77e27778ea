// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tracker/curve/allowance.h"
#include "tracker/curve/floor.h"
#include "tracker/curve/growth_test.h"
#include "tracker/curve/reading.h"

namespace tidemark::tracker {

// A slope with bounds wide enough to extrapolate with, from as little as two points.
struct GrowthEstimate {
  double slope = 0.0;
  double low = 0.0;
  double high = 0.0;
};
GrowthEstimate estimate_growth(std::span<const double> x, std::span<const double> y);

// When a reading that grows reaches the limit, or where it seems to end.
Forecast forecast(const Reading& reading, const Floor& floor, const Pace& pace,
                  std::optional<double> limit_bytes);

// The smallest growth per unit of the axis that would have been called a leak in this window: what
// its noise hides, and what the gates let pass. `sigma_bytes`: of the whole floor.
double smallest_detectable(std::span<const double> x, std::span<const double> y,
                           const std::vector<Jump>& jumps, double sigma_bytes, const Gates& gates);

}  // namespace tidemark::tracker
