// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "tests/bench/accuracy/recipe.h"

namespace tidemark::bench {

// How small a leak can be and still be seen in a curve, whoever looks: 4 sigma sqrt(12 / m^3) per
// block of the floor.
struct Bound {
  double rate = 0.0;          // bytes per axis unit
  double blocks = 0.0;        // m
  double block_length = 0.0;  // on the axis
  double sigma_bytes = 0.0;   // long-run noise of the floor
};

// The generator's own floor blocks, on the axis: a twentieth of the span, but 8 samples or more; a
// twelfth where that leaves fewer than 12 blocks; and never less than one period of the wave.
double block_length(std::span<const double> xs, double period);

// Of what lies at `window_from` and later. Sigma is measured, not derived: the blocks' minima of
// `draws` draws of noise and waves alone, a least-squares line through each; sigma is what makes
// sigma sqrt(12 / m^3) the standard deviation of these slopes. So it holds the autocorrelation,
// the shape of a minimum, gaps and aliasing.
Bound detection_bound(const Recipe& recipe, std::span<const double> xs, double window_from,
                      Random& random, std::size_t draws = 64);

}  // namespace tidemark::bench
