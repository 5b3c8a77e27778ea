// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/patterns.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "tracker/curve/statistics.h"

namespace tidemark::tracker {

GrowthRate rate_on_axes(const Pace& pace, double slope, double low, double high) {
  GrowthRate rate;
  if (!std::isnan(pace.seconds_per_x) && pace.seconds_per_x > 0.0) {
    rate.bytes_per_s = slope / pace.seconds_per_x;
    rate.low_bytes_per_s = low / pace.seconds_per_x;
    rate.high_bytes_per_s = high / pace.seconds_per_x;
  }
  if (!std::isnan(pace.steps_per_x) && pace.steps_per_x > 0.0) {
    rate.bytes_per_step = slope / pace.steps_per_x;
    rate.low_bytes_per_step = low / pace.steps_per_x;
    rate.high_bytes_per_step = high / pace.steps_per_x;
  }
  return rate;
}

Pattern warmup_pattern(const Floor& floor, const Pace& pace, std::size_t plateau) {
  Pattern pattern;
  pattern.kind = PatternKind::kWarmup;
  pattern.from = floor.points.front().at;
  pattern.to = floor.points[plateau].at;
  pattern.growth_bytes = floor.bytes[plateau] - floor.bytes.front();
  const std::size_t count = plateau + 1;
  const Line line = theil_sen(std::span(floor.x).first(count), std::span(floor.bytes).first(count));
  pattern.rate = rate_on_axes(pace, line.slope, line.slope, line.slope);
  return pattern;
}

Pattern jump_pattern(const Floor& floor, const Jump& jump) {
  Pattern pattern;
  pattern.kind = jump.height_bytes > 0.0 ? PatternKind::kStep : PatternKind::kRelease;
  pattern.from = pattern.to = floor.points[jump.index].at;
  pattern.height_bytes = std::abs(jump.height_bytes);
  pattern.growth_bytes = jump.height_bytes;
  pattern.count = 1;
  return pattern;
}

std::optional<Pattern> spikes_pattern(const Curve& curve, const Cycles& cycles, const Pace& pace) {
  if (cycles.excursions.empty()) {
    return std::nullopt;
  }
  Pattern spikes;
  spikes.kind = PatternKind::kSpikes;
  spikes.from = moment_of(curve.points[cycles.excursions.front().from]);
  spikes.to = moment_of(curve.points[cycles.excursions.back().to]);
  spikes.height_bytes = cycles.height_bytes;
  spikes.count = cycles.excursions.size();
  if (cycles.period) {
    if (!std::isnan(pace.seconds_per_x)) {
      spikes.period_s = *cycles.period * pace.seconds_per_x;
    }
    if (!std::isnan(pace.steps_per_x)) {
      spikes.period_steps = *cycles.period * pace.steps_per_x;
    }
  }
  return spikes;
}

void sort_by_place(std::vector<Pattern>& patterns, Axis axis) {
  const auto begin = [&](const Pattern& pattern) {
    return (axis == Axis::kSteps ? pattern.from.step : pattern.from.t_s).value_or(0.0);
  };
  std::stable_sort(patterns.begin(), patterns.end(),
                   [&](const Pattern& a, const Pattern& b) { return begin(a) < begin(b); });
}

}  // namespace tidemark::tracker
