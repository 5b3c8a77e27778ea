// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/slowing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr double kStartShare = 0.1;
constexpr double kSlower = 0.8;
constexpr std::size_t kManyPoints = 24;
constexpr double kClearly = 2.0;  // standard errors, where there are points enough for some

double value_at(std::span<const double> x, std::span<const double> y, double at) {
  const auto right = std::upper_bound(x.begin(), x.end(), at);
  if (right == x.begin() || right == x.end()) {
    return right == x.begin() ? y.front() : y.back();
  }
  const auto i = static_cast<std::size_t>(right - x.begin());
  const double share = (at - x[i - 1]) / (x[i] - x[i - 1]);
  return y[i - 1] + share * (y[i] - y[i - 1]);
}

struct Rate {
  double slope = 0.0;
  double error = 0.0;
};

Rate rate_within(std::span<const double> x, std::span<const double> y, double from, double to) {
  const auto first =
      static_cast<std::size_t>(std::lower_bound(x.begin(), x.end(), from) - x.begin());
  const auto last = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), to) - x.begin());
  if (x.size() < kManyPoints || last < first + 4) {
    return {(value_at(x, y, to) - value_at(x, y, from)) / (to - from), 0.0};
  }
  const auto xs = x.subspan(first, last - first);
  const auto ys = y.subspan(first, last - first);
  const Line line = fit_line(xs, ys);
  const Noise noise = noise_of(residuals(line, xs, ys), 2, 0.0);
  return {line.slope, noise.long_run / std::sqrt(std::max(spread(xs), 1e-300))};
}

}  // namespace

bool slows_down(std::span<const double> x, std::span<const double> y) {
  if (x.size() < 6) {
    return false;
  }
  const double span = x.back() - x.front();
  const double start = x.front() + kStartShare * span;
  const double third = (x.back() - start) / 3.0;
  if (third <= 0.0) {
    return false;
  }
  std::array<Rate, 3> rates;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double from = start + third * static_cast<double>(i);
    rates[i] = rate_within(x, y, from, from + third);
  }
  const auto slower = [](const Rate& now, const Rate& before) {
    const double error = std::hypot(now.error, before.error);
    return now.slope <= kSlower * before.slope && before.slope - now.slope >= kClearly * error;
  };
  return rates[0].slope > 0.0 && slower(rates[1], rates[0]) && slower(rates[2], rates[1]);
}

}  // namespace tidemark::tracker
