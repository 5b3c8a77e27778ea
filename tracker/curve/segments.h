// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tracker/curve/statistics.h"

namespace tidemark::tracker {

// A stretch of the floor that one line describes: points [first, last).
struct Segment {
  std::size_t first = 0;
  std::size_t last = 0;
  Line line;
};

// The fewest straight pieces that describe the floor, as the information criterion weighs pieces
// against misfit; they need not meet. `least_sigma`: finer than that nothing is resolved.
std::vector<Segment> find_segments(std::span<const double> x, std::span<const double> y,
                                   double least_sigma);

// What is left when the straight pieces are taken out: bends are no noise.
Noise noise_around_segments(std::span<const double> x, std::span<const double> y,
                            double least_sigma);

}  // namespace tidemark::tracker
