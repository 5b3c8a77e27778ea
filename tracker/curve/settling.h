// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "tracker/curve/curve.h"
#include "tracker/curve/floor.h"

// Whether growth has ended, slows down, or goes on.
namespace tidemark::tracker {

// From which point on the floor stands still until its end: at least four points, or two or three
// that span half of it, rising by no more than four sigma (or one per cent) and without a jump.
// Where it rose before, its rate must have fallen off. nullopt: it does not stand still. Its sigma
// is at least `least_sigma`: what is known about the points besides how they differ.
std::optional<std::size_t> still_since(std::span<const double> x, std::span<const double> y,
                                       double least_sigma = 0.0);

// One sigma of the floor as its differences tell it, whatever its trend.
double local_sigma(std::span<const double> y);

// Growth that has become slower and slower ever since the start, from third to third; what happens
// in the first tenth is starting up and does not count. Caches that fill look like that.
bool slows_down(std::span<const double> x, std::span<const double> y);

// The rest tells a rise that began in the middle of a run from a late warm-up.

inline constexpr std::size_t kBlocksOfLateRise = 6;

// How long a rise must have lasted under the automatic allowance: 200 steps, or 10 minutes where no
// steps are known.
double shortest_late_rise(const Curve& curve);

// The rise that was judged from that block on is older than `needed`.
bool has_lasted(const Curve& curve, const Floor& floor, std::size_t judged_from, double needed);

// The floor stood still before `onset`: really, not only slowly enough to look like it, and for so
// long that the noise could not hide the slope that followed.
bool has_settled_before(const Floor& floor, std::size_t onset, double slope_after);

// The last part of the blocks from `first` on, looked at alone, surely rises no more at 30 % of
// `slope`. A line or a bend through a rise between two plateaus does not see its end.
bool has_stopped(const Floor& floor, std::size_t first, double slope);

}  // namespace tidemark::tracker
