// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tests/bench/accuracy/generator.h"
#include "tests/bench/accuracy/random.h"
#include "tests/bench/accuracy/recipe.h"

namespace tidemark::bench {

// A family's recipe for these places; the leak, if it has one, still without its rate.
struct Draft {
  Recipe recipe;
  double warmup_end = 0.0;
  Verdicts right;                  // when nothing leaks
  double drift_of_gate = 0.0;      // of a trend that is too slow to matter: its share of the gate
  double file_growth_bytes = 0.0;  // RssFile grows by that much over the run
  double swapped_bytes = 0.0;      // this much goes to swap
  double swap_from = 0.0;
  double swap_to = 0.0;
};

Draft draft_family(Family family, std::span<const double> xs, Random& random);

}  // namespace tidemark::bench
