// SPDX-License-Identifier: Apache-2.0
#include "live/look_plan.h"

#include <algorithm>

namespace tidemark::live {
namespace {

constexpr double kWaitForStepS = 2.0;
constexpr double kWaitForLogS = 10.0;
constexpr double kEarlyS = 0.25;

}  // namespace

bool LookPlan::is_due(const Tick& tick) const {
  if (has_begun_all()) {
    return false;
  }
  // Where its steps are known, they are counted from the first look on: its log or its markers are
  // read by then.
  if (begun_ == 0 && !options_.was_started) {
    return tick.step.has_value() || tick.t_s >= (options_.has_log ? kWaitForLogS : kWaitForStepS);
  }
  if (begun_ == 0 && options_.load_ns) {
    return tick.t_s >= to_seconds(*options_.load_ns);
  }
  if (options_.every.steps && tick.step && (last_step_ || begun_ == 0)) {
    return *tick.step - last_step_.value_or(0) >= *options_.every.steps;
  }
  // A tick that comes a moment early is the one that is meant, not the next.
  const double every_s = to_seconds(options_.every.ns);
  return tick.t_s - last_s_ >= every_s - std::min(kEarlyS, every_s / 10.0);
}

HeapLookThread::Round LookPlan::make_round(const Tick& tick) {
  HeapLookThread::Round round;
  round.t_s = tick.t_s;
  round.step = tick.step;
  round.targets = targets_.of(tick);
  if (round.targets.empty()) {
    return round;
  }
  ++begun_;
  last_s_ = tick.t_s;
  last_step_ = tick.step;
  if (has_begun_all() && !options_.exports.empty()) {
    round.exports = options_.exports;
  }
  return round;
}

}  // namespace tidemark::live
