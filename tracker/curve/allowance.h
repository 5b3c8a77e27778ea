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

// Where on the judged axis the warm-up allowance ends. Growth before it is never a leak.
double allowance_end(const Curve& curve, const Pace& pace, const Options& options);

// Growth per unit of the judged axis below which a trend is drift. `floor_bytes`: the level that
// the default is a share of.
double least_rate(const Pace& pace, const Options& options, double floor_bytes);

}  // namespace tidemark::tracker
