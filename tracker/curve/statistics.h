// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

// Small robust statistics on a few dozen points; for the large passes see curve and cycles.
namespace tidemark::tracker {

// 0 of nothing.
double median(std::vector<double> values);
double quantile(std::vector<double> values, double share);
// Standard deviation by the median absolute deviation: up to half of the values may be outliers.
double robust_sigma(const std::vector<double>& values);
// The same by the quarter of the values nearest to the median: three of four may be outliers.
double core_sigma(const std::vector<double>& values);
std::vector<double> differences(std::span<const double> values);

struct Line {
  double at = 0.0;  // where `level` holds: the mean of the places
  double level = 0.0;
  double slope = 0.0;

  double value(double x) const { return level + slope * (x - at); }
};

// Least squares. Places may not all be equal; then the slope is 0.
Line fit_line(std::span<const double> x, std::span<const double> y);
// Median of the slopes between all pairs: nearly a third of the points may be outliers.
Line theil_sen(std::span<const double> x, std::span<const double> y);
std::vector<double> residuals(const Line& line, std::span<const double> x,
                              std::span<const double> y);
double sum_of_squares(std::span<const double> values);

// Sum of (x - mean)^2: what a slope's error is divided by.
double spread(std::span<const double> x);

// Noise of a series of residuals whose neighbours resemble each other.
struct Noise {
  double sigma = 0.0;  // of one point
  double long_run =
      0.0;  // of sums: `sigma` times how much slower than independent they average out
  double effective = 0.0;  // as many independent points would do
};
// `parameters`: of the model that left these residuals. `least`: no series is quieter than that.
Noise noise_of(std::span<const double> residuals, std::size_t parameters, double least);

// Of a line through `points` points. Noise that wanders takes some, but is in the standard error
// already: not all of them.
double degrees_of_freedom(const Noise& noise, std::size_t points);

// How many standard errors a slope must be away from 0: about one chance in 2,000, gentler below
// six degrees of freedom, where only a clean line can pass at all.
double significance_bar(double degrees_of_freedom);
// Half-width of a 95 % interval in standard errors.
double interval_width(double degrees_of_freedom);

}  // namespace tidemark::tracker
