// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace tidemark::tracker {

// From which point on the floor stands still until its end: at least four points, or two or three
// that span half of it, rising by no more than four sigma (or one per cent) and without a jump.
// Where it rose before, its rate must have fallen off. nullopt: it does not stand still. Its sigma
// is at least `least_sigma`: what is known about the points besides how they differ.
std::optional<std::size_t> still_since(std::span<const double> x, std::span<const double> y,
                                       double least_sigma = 0.0);

// One sigma of the floor as its differences tell it, whatever its trend.
double local_sigma(std::span<const double> y);

}  // namespace tidemark::tracker
