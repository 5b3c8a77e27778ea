// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tracker/curve/curve.h"
#include "tracker/curve/floor.h"

// What makes a rise that began in the middle of a run more than a late warm-up.
namespace tidemark::tracker {

inline constexpr std::size_t kBlocksOfLateRise = 6;

// The rise that was judged from that block on is older than 200 steps, or 10 minutes where no steps
// are known.
bool has_lasted(const Curve& curve, const Floor& floor, std::size_t judged_from);

// The floor stood still before `onset`: really, not only slowly enough to look like it, and for so
// long that the noise could not hide the slope that followed.
bool has_settled_before(const Floor& floor, std::size_t onset, double slope_after);

// The last part of the blocks from `first` on, looked at alone, surely rises no more at 30 % of
// `slope`. A line or a bend through a rise between two plateaus does not see its end.
bool has_stopped(const Floor& floor, std::size_t first, double slope);

}  // namespace tidemark::tracker
