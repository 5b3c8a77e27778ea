// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/simple_rules.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tidemark::bench {
namespace {

struct Line {
  double slope = 0.0;
  double r_squared = 0.0;
};

double mean(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

Line fit(std::span<const double> xs, std::span<const double> ys) {
  const double mean_x = mean(xs);
  const double mean_y = mean(ys);
  double xx = 0.0;
  double xy = 0.0;
  double yy = 0.0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    xx += (xs[i] - mean_x) * (xs[i] - mean_x);
    xy += (xs[i] - mean_x) * (ys[i] - mean_y);
    yy += (ys[i] - mean_y) * (ys[i] - mean_y);
  }
  if (xx <= 0.0 || yy <= 0.0) {
    return {};
  }
  return {xy / xx, xy * xy / (xx * yy)};
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*middle + *std::max_element(values.begin(), middle)) / 2.0;
}

// Pairs i < j with values[i] < values[j], by merging sorted halves; sorts `values`.
std::int64_t rising_pairs(std::span<double> values, std::vector<double>& scratch) {
  if (values.size() < 2) {
    return 0;
  }
  const std::size_t half = values.size() / 2;
  const std::span<double> left = values.first(half);
  const std::span<double> right = values.subspan(half);
  std::int64_t pairs = rising_pairs(left, scratch) + rising_pairs(right, scratch);
  std::size_t below = 0;
  for (const double value : right) {
    while (below < half && left[below] < value) {
      ++below;
    }
    pairs += static_cast<std::int64_t>(below);
  }
  scratch.resize(values.size());
  std::merge(left.begin(), left.end(), right.begin(), right.end(), scratch.begin());
  std::copy(scratch.begin(), scratch.end(), values.begin());
  return pairs;
}

std::int64_t rising_pairs(std::vector<double> values) {
  std::vector<double> scratch;
  return rising_pairs(std::span<double>(values), scratch);
}

double mann_kendall_z(std::span<const double> ys) {
  const auto n = static_cast<double>(ys.size());
  std::map<double, double> ties;
  std::vector<double> mirrored;
  mirrored.reserve(ys.size());
  for (const double y : ys) {
    ties[y] += 1.0;
    mirrored.push_back(-y);
  }
  const auto s =
      static_cast<double>(rising_pairs({ys.begin(), ys.end()}) - rising_pairs(std::move(mirrored)));
  double variance = n * (n - 1.0) * (2.0 * n + 5.0);
  for (const auto& [value, count] : ties) {
    variance -= count * (count - 1.0) * (2.0 * count + 5.0);
  }
  if (variance <= 0.0 || s == 0.0) {
    return 0.0;
  }
  return (s > 0.0 ? s - 1.0 : s + 1.0) / std::sqrt(variance / 18.0);
}

}  // namespace

bool least_squares_fits(std::span<const double> xs, std::span<const double> bytes) {
  const Line line = fit(xs, bytes);
  return line.slope > 0.0 && line.r_squared > 0.5;
}

bool least_squares_rises(std::span<const double> xs, std::span<const double> bytes) {
  return fit(xs, bytes).slope * (xs.back() - xs.front()) > 0.1 * bytes.front();
}

bool mann_kendall(std::span<const double> /*xs*/, std::span<const double> bytes) {
  constexpr double kOnePercentTwoSided = 2.5758;
  return mann_kendall_z(bytes) > kOnePercentTwoSided;
}

bool mann_kendall_second_half(std::span<const double> xs, std::span<const double> bytes) {
  const std::size_t half = bytes.size() / 2;
  return mann_kendall(xs.subspan(half), bytes.subspan(half));
}

bool first_against_last_minimum(std::span<const double> /*xs*/, std::span<const double> bytes) {
  const std::size_t count = std::min<std::size_t>(10, bytes.size() / 2);
  const auto first = bytes.first(count);
  const auto last = bytes.last(count);
  return *std::min_element(last.begin(), last.end()) -
             *std::min_element(first.begin(), first.end()) >
         100e6;
}

bool theil_sen_second_half(std::span<const double> xs, std::span<const double> bytes) {
  const std::size_t half = bytes.size() / 2;
  const std::size_t available = bytes.size() - half;
  const std::size_t count = std::min<std::size_t>(available, 256);
  std::vector<std::size_t> picked(count);
  std::vector<double> amounts(count);
  for (std::size_t i = 0; i < count; ++i) {
    picked[i] = half + i * available / count;
    amounts[i] = bytes[picked[i]];
  }
  std::vector<double> slopes;
  slopes.reserve(count * count / 2);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const double distance = xs[picked[j]] - xs[picked[i]];
      if (distance > 0.0) {
        slopes.push_back((amounts[j] - amounts[i]) / distance);
      }
    }
  }
  return !slopes.empty() && median(slopes) * (xs.back() - xs[half]) > 0.02 * median(amounts);
}

}  // namespace tidemark::bench
