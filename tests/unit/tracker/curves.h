// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tracker/curve/judge.h"
#include "tracker/curve/series.h"

// Curves for the tests of the tracker. Memory is in megabytes here: the numbers are easier to read.
namespace tidemark::tracker::test {

inline constexpr double kMb = 1e6;

using Points = std::vector<std::pair<double, double>>;  // place, MB

inline Series on_time(const Points& points) {
  Series series;
  for (const auto& [x, mb] : points) {
    series.add(x, kUnknown, mb * kMb);
  }
  return series;
}

inline Series on_steps(const Points& points) {
  Series series;
  for (const auto& [x, mb] : points) {
    series.add(kUnknown, x, mb * kMb);
  }
  return series;
}

// The first `count` of them.
inline Points prefix(const Points& points, std::size_t count) {
  return {points.begin(), points.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Repeatable noise of standard deviation 1: a sum of twelve uniform numbers.
class TestNoise {
 public:
  explicit TestNoise(std::uint64_t seed) : state_(seed) {}
  double next() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      sum += static_cast<double>(state_ >> 11U) / 9007199254740992.0;
    }
    return sum;
  }

 private:
  std::uint64_t state_;
};

// One point per second: level_mb(i) plus noise.
template <typename Level>
Points sampled(std::size_t count, double sigma_mb, const Level& level_mb, std::uint64_t seed = 7) {
  TestNoise noise(seed);
  Points points;
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    points.emplace_back(x, level_mb(x) + sigma_mb * noise.next());
  }
  return points;
}

inline Options with_warmup_seconds(double seconds) {
  Options options;
  options.warmup.seconds = seconds;
  return options;
}

inline Options with_warmup_steps(double steps) {
  Options options;
  options.warmup.steps = steps;
  return options;
}

}  // namespace tidemark::tracker::test
