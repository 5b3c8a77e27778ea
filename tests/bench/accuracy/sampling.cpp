// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/sampling.h"

#include <algorithm>
#include <cmath>

namespace tidemark::bench {
namespace {

// Places of `points` looks in units of the mean interval: 0, 1, 2, ... when the clock is regular.
std::vector<double> draw_ticks(std::size_t points, Random& random) {
  const double jitter = random.chance(1.0 / 3.0) ? random.between(0.1, 0.45) : 0.0;
  std::vector<double> gaps_at;
  if (points >= 60 && random.chance(0.2)) {
    gaps_at.resize(random.count(1, 3));
    for (double& at : gaps_at) {
      at = random.uniform() * static_cast<double>(points);
    }
  }
  const double gap = static_cast<double>(points) * random.between(0.02, 0.07);
  std::vector<double> ticks(points);
  for (std::size_t i = 0; i < points; ++i) {
    const auto place = static_cast<double>(i);
    const auto gaps = std::count_if(gaps_at.begin(), gaps_at.end(),
                                    [&](double at) { return at > 0.0 && at < place; });
    ticks[i] = place + gap * static_cast<double>(gaps) +
               (i > 0 ? jitter * random.between(-1.0, 1.0) : 0.0);
  }
  return ticks;
}

}  // namespace

Sampling draw_sampling(std::size_t points, Random& random) {
  const double interval_s = random.log_between(0.5, 120.0);
  const double kind = random.uniform();
  std::vector<double> ticks = draw_ticks(points, random);
  Sampling sampling;
  if (kind < 0.4) {
    sampling.t_s = std::move(ticks);
    for (double& t : sampling.t_s) {
      t *= interval_s;
    }
    return sampling;
  }
  sampling.axis = tracker::Axis::kSteps;
  sampling.has_time = kind < 0.8;
  // Some look more often than a step takes and see the same step again.
  const double steps_per_look = random.log_between(0.3, 50.0);
  sampling.step.resize(points);
  sampling.t_s.resize(points);
  double stalled_s = 0.0;
  for (std::size_t i = 0; i < points; ++i) {
    stalled_s += random.chance(0.01) ? interval_s * random.between(1.0, 5.0) : 0.0;
    sampling.step[i] = std::floor(std::max(ticks[i], 0.0) * steps_per_look);
    sampling.t_s[i] = ticks[i] * interval_s + stalled_s;
  }
  const double steps = sampling.step.back() - sampling.step.front();
  sampling.seconds_per_unit = (sampling.t_s.back() - sampling.t_s.front()) / steps;
  return sampling;
}

}  // namespace tidemark::bench
