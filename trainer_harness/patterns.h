// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trainer_harness/plan.h"

namespace tidemark::harness {

// Steps that one process takes: not from 1 on when it resumes, not to the planned end when it is
// stopped.
struct StepRange {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
};

// What memory does. `from_step` is the last step without it.
struct WarmupPattern {
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;
  std::uint64_t growth_bytes = 0;
  bool is_over = true;  // the steps go on after it
};
struct SpikePattern {
  std::uint64_t period_steps = 0;
  std::uint64_t height_bytes = 0;
};
struct LeakPattern {
  bool in_jumps = false;
  std::uint64_t from_step = 0;
  double bytes_per_step = 0;
};
struct Patterns {
  std::vector<WarmupPattern> warmups;
  std::vector<SpikePattern> spikes;
  std::vector<LeakPattern> leaks;
};

// What begins within these steps, in a process that has none of the memory of steps before them.
Patterns patterns_of(const Plan& plan, const StepRange& steps);
// Whether the leak that was planned (not a staircase, not a replay) begins within them.
bool leaks_in(const Plan& plan, const StepRange& steps);

// "stable", "warmup", "spikes" or "leak".
std::string_view class_of(const Patterns& patterns);
// Where the last warm-up ends; nullopt: there is none, or one still rises at the end.
std::optional<std::uint64_t> plateau_step_of(const Patterns& patterns);

}  // namespace tidemark::harness
