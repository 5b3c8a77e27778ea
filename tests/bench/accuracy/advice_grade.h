// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/accuracy/generator.h"
#include "tests/bench/accuracy/real_curves.h"
#include "tests/bench/accuracy/scoring.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::bench {

// A run of one trainer with that curve.
tracker::RunTracks run_of(const Curve& curve);

// Judges generated curves and real ones as runs of one trainer, prints which advice was given and
// how often it fits what the curve was made of, adds the bar. Advice that guesses is wrong.
void grade_advice(std::uint64_t seed, std::uint64_t count, const std::vector<RealCurve>& real,
                  Bars& bars);

}  // namespace tidemark::bench
