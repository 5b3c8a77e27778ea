// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/allowance.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tidemark::tracker {
namespace {

constexpr double kAutomaticSeconds = 30 * 60;
constexpr double kAutomaticSteps = 500;
constexpr double kEpochs = 1.25;
constexpr double kShareOfTimeToLimit = 0.5;
constexpr double kShortestWaitSeconds = 5 * 60;
constexpr double kShortestWaitSteps = 50;
constexpr double kDefaultShare = 0.005;  // of the floor, per hour or per 1,000 steps
constexpr double kSecondsPerHour = 3600;

// The first place that is `seconds` after the start.
double place_after_seconds(const Curve& curve, const Pace& pace, double seconds) {
  const double start = curve.points.front().t_s;
  for (const CurvePoint& point : curve.points) {
    if (point.t_s - start >= seconds) {
      return point.x;
    }
  }
  const CurvePoint& last = curve.points.back();
  const double missing = seconds - (last.t_s - start);
  return last.x + missing / std::max(pace.seconds_per_x, 1e-9);
}

// What was over of the allowance when the curve began.
struct SpentAllowance {
  double seconds = 0.0;
  double steps = 0.0;
};

// Time before the first step does not count: on steps it is the time that those before took.
SpentAllowance spent_before(const Curve& curve, const Pace& pace, const Options& options) {
  const double age_s = std::max(0.0, options.age_at_start_s.value_or(0.0));
  if (curve.axis == Axis::kTime) {
    return {age_s, 0.0};
  }
  if (!options.steps_at_start || std::isnan(pace.seconds_per_x)) {
    return {};
  }
  const double steps = std::min(*options.steps_at_start, age_s / pace.seconds_per_x);
  return {steps * pace.seconds_per_x, steps};
}

std::optional<CurvePoint> first_step_of(const Curve& curve) {
  const auto first = std::find_if(curve.points.begin(), curve.points.end(),
                                  [](const CurvePoint& point) { return !std::isnan(point.step); });
  return first == curve.points.end() ? std::nullopt : std::optional(*first);
}

}  // namespace

Pace pace_of(const Curve& curve) {
  Pace pace;
  const double span = curve.span();
  if (span <= 0.0) {
    return pace;
  }
  const CurvePoint& first = curve.points.front();
  const CurvePoint& last = curve.points.back();
  // A clock or counter that stands still says nothing about how fast the other one runs: a rate per
  // unit of it would be none.
  const auto advance = [span](double from, double to) {
    return to > from ? (to - from) / span : kUnknown;
  };
  pace.seconds_per_x = curve.axis == Axis::kTime ? 1.0 : advance(first.t_s, last.t_s);
  pace.steps_per_x = curve.axis == Axis::kSteps ? 1.0 : advance(first.step, last.step);
  return pace;
}

bool warmup_applies(const Curve& curve, const Pace& pace, const Warmup& warmup) {
  return (warmup.seconds && !std::isnan(pace.seconds_per_x)) ||
         (warmup.steps && curve.axis == Axis::kSteps);
}

bool min_leak_applies(const Pace& pace, const Rate& min_leak) {
  return !std::isnan(min_leak.unit == RateUnit::kSecond ? pace.seconds_per_x : pace.steps_per_x);
}

Allowance allowance_of(const Curve& curve, const Pace& pace, const Options& options) {
  const double start = curve.points.front().x;
  const bool time_known = !std::isnan(pace.seconds_per_x);
  const bool on_steps = curve.axis == Axis::kSteps;
  const SpentAllowance spent = spent_before(curve, pace, options);
  const double spent_x = on_steps ? spent.steps : spent.seconds;
  Allowance allowance{start, 0.0};
  const auto reach = [&](double end) {
    allowance.end = std::max(allowance.end, end);
    allowance.length = std::max(allowance.length, end - start + spent_x);
  };
  const auto after_seconds = [&](double seconds) {
    const double left = std::max(0.0, seconds - spent.seconds);
    reach(on_steps ? place_after_seconds(curve, pace, left) : start + left);
  };
  const auto after_steps = [&](double steps) { reach(start + std::max(0.0, steps - spent.steps)); };
  if (warmup_applies(curve, pace, options.warmup)) {
    if (options.warmup.seconds && time_known) {
      after_seconds(*options.warmup.seconds);
    }
    if (options.warmup.steps && on_steps) {
      after_steps(*options.warmup.steps);
    }
  } else if (on_steps && options.epoch_steps) {
    after_steps(kEpochs * *options.epoch_steps);
  } else if (!on_steps && options.epoch_seconds) {
    after_seconds(kEpochs * *options.epoch_seconds);
  } else {
    if (time_known) {
      after_seconds(kAutomaticSeconds);
    }
    if (on_steps) {
      after_steps(kAutomaticSteps);
    } else if (const auto first_step = first_step_of(curve)) {  // too few steps to be the axis
      reach(first_step->x + kAutomaticSeconds);
    }
  }
  return allowance;
}

double longest_wait(const Pace& pace, double to_limit) {
  const double least = std::isnan(pace.seconds_per_x)
                           ? kShortestWaitSteps
                           : kShortestWaitSeconds / std::max(pace.seconds_per_x, 1e-9);
  return std::max(kShareOfTimeToLimit * to_limit, least);
}

double least_rate(const Pace& pace, const Options& options, double floor_bytes) {
  const bool time_known = !std::isnan(pace.seconds_per_x);
  if (options.min_leak && min_leak_applies(pace, *options.min_leak)) {
    const bool by_time = options.min_leak->unit == RateUnit::kSecond;
    return options.min_leak->bytes_per_unit() * (by_time ? pace.seconds_per_x : pace.steps_per_x);
  }
  const double share = kDefaultShare * floor_bytes;
  return time_known ? share / kSecondsPerHour * pace.seconds_per_x
                    : share / 1000.0 * pace.steps_per_x;
}

}  // namespace tidemark::tracker
