// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "trainer_harness/options.h"

namespace tidemark::harness {

// Memory of real jobs, step by step, in MB as they were logged, interpolated between log lines.
//   job1, job2    grow by about 165 MB a step, flat from step 90 on
//   valspike      each validation loads everything; the garbage collector frees all of it
//   slowleak      the same over a floor that rises from 6000 to 7000 MB in 240 steps
//   catastrophic  about 200 MB every few steps, irregular, without end
double replayed_mb(Replay replay, std::uint64_t step, std::uint64_t seed);

inline constexpr double kLoggedMb = 1 << 20;  // in bytes: what the logs mean by MB

// What is known about a curve.
struct ReplayFacts {
  std::uint64_t steps = 0;  // as many as were logged
  // Warm-up: from where to where.
  std::uint64_t warmup_from_step = 0;
  std::optional<std::uint64_t> plateau_step;
  // Spikes: from one to the next, and above the floor.
  std::optional<std::uint64_t> spike_period_steps;
  std::uint64_t spike_steps = 0;  // the last ones of each period
  double spike_mb = 0;
  // Leak.
  double leak_mb_per_step = 0;
  bool leaks_in_jumps = false;
};
ReplayFacts facts_of(Replay replay);

}  // namespace tidemark::harness
