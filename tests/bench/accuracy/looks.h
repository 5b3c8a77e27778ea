// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/bench/accuracy/generator.h"
#include "tests/bench/accuracy/scoring.h"

namespace tidemark::bench {

// A short look at a job, without any option: does it leak or will it settle? Half of the kinds
// leak.
enum class LookKind {
  kLeakFromStart,
  kLeakAfterLoad,
  kLeakInStairs,
  kLeakOfOldJob,
  kLeakBeginsLate,
  kLoad,        // a model or data set is read, then nothing
  kSaturating,  // caches and allocators that fill ever more slowly
  kStaircaseEnds,
  kFirstEpoch,  // straight until every sample was seen once
  kOldJobBusy,  // rises for a phase and comes back
};
inline constexpr std::uint64_t kLookKinds = 10;

// The kinds take turns.
inline LookKind look_at(std::uint64_t index) { return static_cast<LookKind>(index % kLookKinds); }
std::string_view look_name(LookKind kind);

struct Look {
  Curve curve;
  tracker::Options options;  // what is known of the job: age, steps, epochs
  bool leaks = false;
  double onset_s = 0.0;  // of the leak
  double sigma_bytes = 0.0;

  // Whether so much of the curve tells at all: a leak that stands out of the noise, or growth that
  // ends and has ended or slowed down by then. What still rises straight, or jumps, and ends later
  // cannot be told from a leak by anybody.
  bool is_knowable(double at_s) const;
};
Look generate_look(std::uint64_t seed, std::uint64_t index);

// Judges `count` looks at 2, 5 and 10 minutes, prints the tables, adds the bars.
void judge_looks(std::uint64_t seed, std::uint64_t count, Bars& bars);

}  // namespace tidemark::bench
