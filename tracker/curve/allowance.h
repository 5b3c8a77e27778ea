// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tracker/curve/curve.h"
#include "tracker/curve/judge.h"

namespace tidemark::tracker {

// How the other axis runs along the judged one.
struct Pace {
  double seconds_per_x = kUnknown;
  double steps_per_x = kUnknown;
};
Pace pace_of(const Curve& curve);

// Whether what the user asked for can be counted here: steps where none are known cannot.
bool warmup_applies(const Curve& curve, const Pace& pace, const Warmup& warmup);
bool min_leak_applies(const Pace& pace, const Rate& min_leak);

// The warm-up allowance, on the judged axis. Growth before its end is never a leak.
struct Allowance {
  double end = 0.0;
  double length = 0.0;  // with what was over of it when the curve began
};
Allowance allowance_of(const Curve& curve, const Pace& pace, const Options& options);

// How long growth that leads to the limit may be waited for: half of the way there, but long enough
// to load a model. `to_limit`: on the judged axis, from where the growth began.
double longest_wait(const Pace& pace, double to_limit);

// Growth per unit of the judged axis below which a trend is drift. `floor_bytes`: the level that
// the default is a share of.
double least_rate(const Pace& pace, const Options& options, double floor_bytes);

}  // namespace tidemark::tracker
