// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tracker/curve/allowance.h"
#include "tracker/curve/curve.h"
#include "tracker/curve/cycles.h"
#include "tracker/curve/floor.h"
#include "tracker/curve/models.h"
#include "tracker/curve/reading.h"

// What is found in a curve, put into the terms of a reading.
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

}  // namespace tidemark::tracker
