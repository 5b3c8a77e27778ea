// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tracker/curve/statistics.h"

// The shapes that the tail of a floor may have. All fits are least squares; positions and time
// constants are searched on a grid.
namespace tidemark::tracker {

// a + b * (1 - exp(-(x - x0) / tau)): growth that ends.
struct Saturation {
  double plateau_bytes = 0.0;
  double tau = 0.0;
  double squares = 0.0;
};
// nullopt when no rising one fits at all.
std::optional<Saturation> fit_saturation(std::span<const double> x, std::span<const double> y);

// Two slopes that meet.
struct Kink {
  std::size_t index = 0;  // of the first point after it
  double x = 0.0;
  double before = 0.0;  // slopes
  double after = 0.0;
  double after_error = 0.0;  // standard error of `after` for noise of 1
  double bend_error = 0.0;   // the same of `after - before`
  double squares = 0.0;
  std::vector<double> residuals;
};
Kink fit_kink_at(std::span<const double> x, std::span<const double> y, double at);
// The best place that leaves `least` points on either side.
std::optional<Kink> fit_kink(std::span<const double> x, std::span<const double> y,
                             std::size_t least);

// A level that changes from one block to the next and stays.
struct Jump {
  std::size_t index = 0;  // of the first point after it
  double x = 0.0;
  double height_bytes = 0.0;
};
// Those that stand out of the scatter and of their neighbours, and are at least `least_bytes` high.
std::vector<Jump> find_jumps(std::span<const double> x, std::span<const double> y,
                             double least_bytes);

// A slope that all levels between jumps have in common.
struct SlopeWithJumps {
  std::vector<double> smooth;  // the floor without the jumps
  double information = 0.0;    // what the slope's error is divided by, squared: see spread()
};
SlopeWithJumps take_out_jumps(std::span<const double> x, std::span<const double> y,
                              const std::vector<Jump>& jumps);

// Misfit of the best `levels` constant stretches: a floor that only ever jumps.
double fit_levels(std::span<const double> y, std::size_t levels);

// Smaller is better. Points that resemble their neighbours count less: `effective` of them.
double information_criterion(double squares, std::size_t points, double effective,
                             std::size_t parameters, double least_sigma);

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
