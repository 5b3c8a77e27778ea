// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/patterns.h"

#include <algorithm>
#include <cmath>

#include "trainer_harness/replay_curves.h"

namespace tidemark::harness {
namespace {

// The first step from `first` on that is a multiple of `every`.
std::uint64_t next_multiple(std::uint64_t first, std::uint64_t every) {
  return (first + every - 1) / every * every;
}

// Adds a rise from `from_step` to `to_step` as far as the steps go; `growth_bytes` tells by how
// much it has come up to a step.
template <typename GrowthBytes>
void add_warmup(Patterns& patterns, const StepRange& steps, std::uint64_t from_step,
                std::uint64_t to_step, GrowthBytes growth_bytes) {
  if (steps.last > from_step && to_step > from_step) {
    const std::uint64_t end = std::min(to_step, steps.last);
    patterns.warmups.push_back({from_step, end, growth_bytes(end), to_step <= steps.last});
  }
}

void add_warmups(const Plan& plan, const StepRange& steps, Patterns& patterns) {
  const std::uint64_t before = steps.first - 1;
  if (plan.sample_bytes > 0) {
    // Whichever step it begins with, an epoch later it has seen every sample.
    const std::uint64_t step_bytes = plan.cache_bytes() / plan.epoch_steps;
    add_warmup(patterns, steps, before, before + plan.epoch_steps,
               [&](std::uint64_t end) { return step_bytes * (end - before); });
  }
  if (plan.fragment_bytes_per_step > 0) {
    add_warmup(patterns, steps, before, plan.fragment_until_step,
               [&](std::uint64_t end) { return plan.fragment_bytes_per_step * (end - before); });
  }
  if (plan.copy_on_write) {
    // New workers catch up in their first step with what others had copied before it.
    const Plan::CopyOnWrite& cow = *plan.copy_on_write;
    add_warmup(patterns, steps, before, std::max(cow.until_step, steps.first),
               [&](std::uint64_t end) {
                 const auto bytes = static_cast<double>(cow.heap_bytes * cow.workers);
                 return static_cast<std::uint64_t>(std::llround(bytes * copied_share(cow, end)));
               });
  }
}

void add_spikes(const Plan& plan, const StepRange& steps, Patterns& patterns) {
  if (plan.eval_bytes > 0 && next_multiple(steps.first, plan.eval_every) <= steps.last) {
    patterns.spikes.push_back({plan.eval_every, plan.eval_bytes});
  }
  if (plan.cycle_bytes_per_step > 0 && steps.first <= steps.last) {
    const std::uint64_t period = plan.cleanup_every == 0
                                     ? plan.collect_every
                                     : std::min(plan.collect_every, plan.cleanup_every);
    const std::uint64_t most = std::min(period, steps.last - steps.first + 1);
    patterns.spikes.push_back({period, plan.cycle_bytes_per_step * most});
  }
}

void add_leaks(const Plan& plan, const StepRange& steps, Patterns& patterns) {
  if (leaks_in(plan, steps)) {
    patterns.leaks.push_back({false, std::max(plan.leak->after_step, steps.first - 1),
                              static_cast<double>(plan.leak->bytes_per_step)});
  }
  if (plan.checkpoint_bytes > 0) {
    const std::uint64_t first_copy = next_multiple(steps.first, plan.checkpoint_every);
    if (first_copy <= steps.last) {
      patterns.leaks.push_back({true, first_copy,
                                static_cast<double>(plan.checkpoint_bytes) /
                                    static_cast<double>(plan.checkpoint_every)});
    }
  }
}

void add_replayed(const Plan::Replayed& plan, const StepRange& steps, Patterns& patterns) {
  const ReplayFacts facts = facts_of(plan.replay);
  const double byte_scale = plan.scale * kLoggedMb;
  const std::uint64_t before = steps.first - 1;
  if (facts.plateau_step) {
    // What still comes after the plateau's first step counts for the growth.
    add_warmup(patterns, steps, std::max(facts.warmup_from_step, before), *facts.plateau_step,
               [&](std::uint64_t /*end*/) {
                 return replayed_bytes(plan, steps.last) - replayed_bytes(plan, before);
               });
  }
  if (facts.spike_period_steps) {
    const std::uint64_t period = *facts.spike_period_steps;
    const std::uint64_t in_period = std::max(steps.first % period, period - facts.spike_steps);
    if (steps.first / period * period + in_period <= steps.last) {
      patterns.spikes.push_back(
          {period, static_cast<std::uint64_t>(std::llround(facts.spike_mb * byte_scale))});
    }
  }
  if (facts.leak_mb_per_step > 0 && steps.first <= steps.last) {
    patterns.leaks.push_back({facts.leaks_in_jumps, before, facts.leak_mb_per_step * byte_scale});
  }
}

}  // namespace

bool leaks_in(const Plan& plan, const StepRange& steps) {
  return plan.leak && plan.leak->bytes_per_step > 0 &&
         steps.last > std::max(plan.leak->after_step, steps.first - 1);
}

Patterns patterns_of(const Plan& plan, const StepRange& steps) {
  Patterns patterns;
  add_warmups(plan, steps, patterns);
  add_spikes(plan, steps, patterns);
  add_leaks(plan, steps, patterns);
  if (plan.replayed) {
    add_replayed(*plan.replayed, steps, patterns);
  }
  return patterns;
}

std::string_view class_of(const Patterns& patterns) {
  if (!patterns.leaks.empty()) {
    return "leak";
  }
  if (!patterns.spikes.empty()) {
    return "spikes";
  }
  return patterns.warmups.empty() ? "stable" : "warmup";
}

std::optional<std::uint64_t> plateau_step_of(const Patterns& patterns) {
  std::optional<std::uint64_t> last;
  for (const WarmupPattern& warmup : patterns.warmups) {
    if (!warmup.is_over) {
      return std::nullopt;
    }
    last = std::max(last.value_or(0), warmup.to_step);
  }
  return last;
}

}  // namespace tidemark::harness
