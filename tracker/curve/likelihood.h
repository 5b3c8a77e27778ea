// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tracker/curve/floor.h"
#include "tracker/curve/series_verdict.h"

// Growth that may end or not: how likely is each? For what cannot be decided yet, so that a short
// look says more than "wait".
namespace tidemark::tracker {

// How long growth has lasted against how long growth that ends may take.
struct RiseTime {
  double spent_share = 0.0;    // of the warm-up allowance, counted from the start of the process
  double shortest_late = 0.0;  // on the axis: how long a rise after a plateau has to last
  bool fills_limit = false;    // going on as it does it reaches the limit inside the allowance
};

// The last rise of a floor: since when, in what form.
struct Rise {
  std::size_t first = 0;  // block of the floor
  RiseForm form = RiseForm::kStraight;
};
Rise last_rise(const Floor& floor);

// The chance that this rise is a leak: odds of 1 to 1, times what each fact makes of them. Fitted
// on generated looks of one seed and checked on another (docs/accuracy.md).
double leak_chance(const Floor& floor, const Rise& rise, const RiseTime& time);

}  // namespace tidemark::tracker
