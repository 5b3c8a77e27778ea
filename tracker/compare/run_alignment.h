// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "tracker/compare/run_diff.h"

namespace tidemark::tracker {

// A tree of one run: its curve and what was read from it.
struct TreeCurve {
  const Series& series;
  const Reading& reading;
};

// On steps when both were judged on steps, else on time; nullopt when there is no common axis.
std::optional<Alignment> align(const TreeCurve& a, const TreeCurve& b);

// Floors of both at a few places of the common part.
std::vector<FloorPair> floors_side_by_side(const TreeCurve& a, const TreeCurve& b,
                                           const Alignment& alignment);

// Highest value of one of the two (`side` 0 or 1) in the common part.
std::optional<double> peak_bytes(const TreeCurve& curve, const Alignment& alignment,
                                 std::size_t side);

}  // namespace tidemark::tracker
