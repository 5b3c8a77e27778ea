// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tracker/curve/allowance.h"
#include "tracker/curve/curve.h"
#include "tracker/curve/cycles.h"
#include "tracker/curve/floor.h"
#include "tracker/curve/growth_test.h"
#include "tracker/curve/models.h"
#include "tracker/curve/series_verdict.h"

// What was found in a curve, put into the terms of its verdict.
namespace tidemark::tracker {

// A slope along the judged axis, on each axis that is known.
GrowthRate rate_on_axes(const Pace& pace, double slope, double low, double high);

// Growth from the start to where the floor settled: block `plateau`.
Pattern warmup_pattern(const Floor& floor, const Pace& pace, std::size_t plateau);
// One jump of the floor: up is a step, down a release.
Pattern jump_pattern(const Floor& floor, const Jump& jump);
// nullopt: there are none.
std::optional<Pattern> spikes_pattern(const Curve& curve, const Cycles& cycles, const Pace& pace);

void sort_by_place(std::vector<Pattern>& patterns, Axis axis);

// A slope with bounds wide enough to extrapolate with, from as little as two points.
struct GrowthEstimate {
  double slope = 0.0;
  double low = 0.0;
  double high = 0.0;
};
GrowthEstimate estimate_growth(std::span<const double> x, std::span<const double> y);

// When a series that grows reaches the limit, or where it seems to end.
Forecast forecast(const SeriesVerdict& judged, const Floor& floor, const Pace& pace,
                  std::optional<double> limit_bytes);

// The smallest growth per unit of the axis that would have been called a leak in this window: what
// its noise hides, and what the gates let pass. `sigma_bytes`: of the whole floor.
double smallest_detectable(std::span<const double> x, std::span<const double> y,
                           const std::vector<Jump>& jumps, double sigma_bytes, const Gates& gates);

// How often a verdict like this one is right: fitted on generated curves of one seed and checked on
// another (docs/accuracy.md).
double confidence_of(const SeriesVerdict& judged, const GrowthTest& growth);

}  // namespace tidemark::tracker
