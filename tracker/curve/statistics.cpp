// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tidemark::tracker {
namespace {

constexpr double kMadToSigma = 1.4826;  // of a normal distribution
constexpr double kQuarterToSigma = 0.3186;
constexpr double kMostCorrelated = 0.9;
constexpr std::size_t kFewCorrelated = 8;  // tell nothing about their correlation

struct TableEntry {
  double freedom;
  double value;
};

// Linear in 1/freedom, which is how these quantiles behave.
template <std::size_t kCount>
double look_up(const std::array<TableEntry, kCount>& table, double freedom) {
  if (freedom <= table.front().freedom) {
    return table.front().value;
  }
  for (std::size_t i = 1; i < kCount; ++i) {
    if (freedom <= table[i].freedom) {
      const double left = 1.0 / table[i - 1].freedom;
      const double right = 1.0 / table[i].freedom;
      const double share = (left - 1.0 / freedom) / (left - right);
      return table[i - 1].value + share * (table[i].value - table[i - 1].value);
    }
  }
  return table.back().value;
}

double mean(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) {
    sum += value;
  }
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

// How much neighbours resemble each other. What is left of few points when a line has been taken
// out resembles less than it should: corrected by the first-order term.
double neighbour_correlation(std::span<const double> residuals) {
  double same = 0.0;
  double next = 0.0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    same += residuals[i] * residuals[i];
    next += i > 0 ? residuals[i] * residuals[i - 1] : 0.0;
  }
  if (same <= 0.0 || residuals.size() < kFewCorrelated) {
    return 0.0;
  }
  const double raw = next / same;
  const double corrected = raw + (2.0 + 4.0 * raw) / static_cast<double>(residuals.size());
  return std::clamp(corrected, 0.0, kMostCorrelated);
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  if (values.empty()) {
    return 0.0;
  }
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = static_cast<std::ptrdiff_t>(std::floor(std::clamp(share, 0.0, 1.0) * last));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0.0;
  }
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*std::max_element(values.begin(), middle) + *middle) / 2.0;
}

double robust_sigma(const std::vector<double>& values) {
  const double centre = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) {
    distances.push_back(std::abs(value - centre));
  }
  return kMadToSigma * median(std::move(distances));
}

double core_sigma(const std::vector<double>& values) {
  const double centre = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) {
    distances.push_back(std::abs(value - centre));
  }
  return quantile(std::move(distances), 0.25) / kQuarterToSigma;
}

std::vector<double> differences(std::span<const double> values) {
  std::vector<double> steps;
  steps.reserve(values.size());
  for (std::size_t i = 1; i < values.size(); ++i) {
    steps.push_back(values[i] - values[i - 1]);
  }
  return steps;
}

double spread(std::span<const double> x) {
  const double centre = mean(x);
  double sum = 0.0;
  for (const double value : x) {
    sum += (value - centre) * (value - centre);
  }
  return sum;
}

Line fit_line(std::span<const double> x, std::span<const double> y) {
  Line line{mean(x), mean(y), 0.0};
  const double below = spread(x);
  if (below > 0.0) {
    double above = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      above += (x[i] - line.at) * (y[i] - line.level);
    }
    line.slope = above / below;
  }
  return line;
}

Line theil_sen(std::span<const double> x, std::span<const double> y) {
  std::vector<double> slopes;
  slopes.reserve(x.size() * x.size() / 2);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = i + 1; j < x.size(); ++j) {
      if (x[j] != x[i]) {
        slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
      }
    }
  }
  Line line{mean(x), 0.0, median(std::move(slopes))};
  line.level = median(residuals(line, x, y));
  return line;
}

std::vector<double> residuals(const Line& line, std::span<const double> x,
                              std::span<const double> y) {
  std::vector<double> rest;
  rest.reserve(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    rest.push_back(y[i] - line.value(x[i]));
  }
  return rest;
}

double sum_of_squares(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) {
    sum += value * value;
  }
  return sum;
}

Noise noise_of(std::span<const double> residuals, std::size_t parameters, double least) {
  const auto points = static_cast<double>(residuals.size());
  const double freedom = std::max(1.0, points - static_cast<double>(parameters));
  const double correlation = neighbour_correlation(residuals);
  const double slowness = (1.0 + correlation) / (1.0 - correlation);
  Noise noise;
  noise.sigma = std::max(least, std::sqrt(sum_of_squares(residuals) / freedom));
  noise.long_run = noise.sigma * std::sqrt(slowness);
  noise.effective = points / slowness;
  return noise;
}

double degrees_of_freedom(const Noise& noise, std::size_t points) {
  constexpr double kLeast = 4.0;
  const double all = static_cast<double>(points) - 2.0;
  return std::max(noise.effective - 2.0, std::min(all, kLeast));
}

double significance_bar(double degrees_of_freedom) {
  static constexpr std::array<TableEntry, 13> kBars{{{1, 64.0},
                                                     {2, 9.9},
                                                     {3, 7.0},
                                                     {4, 6.5},
                                                     {5, 6.0},
                                                     {6, 5.6},
                                                     {8, 5.0},
                                                     {10, 4.6},
                                                     {12, 4.3},
                                                     {15, 4.07},
                                                     {20, 3.85},
                                                     {30, 3.65},
                                                     {1e6, 3.29}}};
  return look_up(kBars, degrees_of_freedom);
}

double interval_width(double degrees_of_freedom) {
  static constexpr std::array<TableEntry, 9> kWidths{{{1, 12.7},
                                                      {2, 4.30},
                                                      {3, 3.18},
                                                      {4, 2.78},
                                                      {5, 2.57},
                                                      {7, 2.36},
                                                      {10, 2.23},
                                                      {20, 2.09},
                                                      {1e6, 1.96}}};
  return look_up(kWidths, degrees_of_freedom);
}

}  // namespace tidemark::tracker
