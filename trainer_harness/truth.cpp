// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/truth.h"

#include <algorithm>
#include <cmath>

#include "common/json_writer.h"
#include "trainer_harness/replay_curves.h"

namespace tidemark::harness {
namespace {

// ---- What memory does ----

// The steps of one process: it may resume after step 1, and may be stopped before the planned end.
struct StepRange {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
};

// `from_step`: the last step before the pattern.
struct WarmupPattern {
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;
  std::uint64_t growth_bytes = 0;
  bool is_over = true;  // there are steps after it
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

// The first step from `first` on that is a multiple of `every`.
std::uint64_t next_multiple(std::uint64_t first, std::uint64_t every) {
  return (first + every - 1) / every * every;
}

// Adds growth from `from_step` to `to_step` or to the last step. `growth_bytes` returns the growth
// up to a step.
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
    // Starting at any step, one epoch later every sample has been seen.
    const std::uint64_t step_bytes = plan.cache_bytes() / plan.epoch_steps;
    add_warmup(patterns, steps, before, before + plan.epoch_steps,
               [&](std::uint64_t end) { return step_bytes * (end - before); });
  }
  if (plan.fragment_bytes_per_step > 0) {
    add_warmup(patterns, steps, before, plan.fragment_until_step,
               [&](std::uint64_t end) { return plan.fragment_bytes_per_step * (end - before); });
  }
  if (plan.copy_on_write) {
    // After a resume, new workers copy in their first step what earlier ones had copied.
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

// Whether the planned leak (not a staircase or a replay) begins within these steps.
bool leaks_in(const Plan& plan, const StepRange& steps) {
  return plan.leak && plan.leak->bytes_per_step > 0 &&
         steps.last > std::max(plan.leak->after_step, steps.first - 1);
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
    // The little growth after the plateau's first step is included.
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

// The patterns within these steps, in a process that has none of the memory of earlier steps.
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

// "stable", "warmup", "spikes" or "leak".
std::string_view class_of(const Patterns& patterns) {
  if (!patterns.leaks.empty()) {
    return "leak";
  }
  if (!patterns.spikes.empty()) {
    return "spikes";
  }
  return patterns.warmups.empty() ? "stable" : "warmup";
}

// Where the last warm-up ends; nullopt: there is none, or it is still growing at the end.
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

// ---- As JSON ----

void write_patterns(JsonWriter& json, const Patterns& patterns, double seconds_per_step) {
  json.key("patterns").begin_array();
  for (const WarmupPattern& warmup : patterns.warmups) {
    json.begin_object().field("kind", "warmup").field("from_step", warmup.from_step);
    json.field("to_step", warmup.to_step).field("growth_bytes", warmup.growth_bytes).end_object();
  }
  for (const SpikePattern& spikes : patterns.spikes) {
    json.begin_object().field("kind", "spikes").field("period_steps", spikes.period_steps);
    json.field("period_s", static_cast<double>(spikes.period_steps) * seconds_per_step);
    json.field("height_bytes", spikes.height_bytes).end_object();
  }
  for (const LeakPattern& leak : patterns.leaks) {
    json.begin_object().field("kind", "leak").field("shape", leak.in_jumps ? "steps" : "linear");
    json.field("from_step", leak.from_step).field("bytes_per_step", leak.bytes_per_step);
    json.field("bytes_per_s", leak.bytes_per_step / seconds_per_step).end_object();
  }
  json.end_array();
}

void write_where(JsonWriter& json, const Plan& plan, const StepRange& steps,
                 std::string_view class_name) {
  json.key("where").begin_object();
  if (leaks_in(plan, steps) && plan.leak->cause == Cause::kShm) {
    json.field("kind", "shm").field("role", nullptr);
  } else if (plan.copy_on_write && class_name == "warmup") {
    json.field("kind", "role").field("role", "dataloader_worker");
  } else {
    json.field("kind", "process").field("role", "trainer");
  }
  json.end_object();
}

std::optional<std::uint64_t> worker_count(const Plan& plan) {
  if (!plan.pool && !plan.copy_on_write) {
    return std::nullopt;
  }
  return (plan.pool ? plan.pool->workers : 0) +
         (plan.copy_on_write ? plan.copy_on_write->workers : 0);
}

std::string scenario_text(const TrainerOptions& options) {
  std::string text;
  for (const Scenario scenario : options.scenarios) {
    text += (text.empty() ? "" : "+") + std::string(name_of(scenario));
  }
  return text;
}

}  // namespace

double planned_seconds_per_step(const Plan& plan) {
  const double eval_share = plan.eval_every == 0 ? 0.0
                                                 : static_cast<double>(plan.eval_batches) /
                                                       static_cast<double>(plan.eval_every);
  return plan.step_time_s * (1.0 + eval_share);
}

std::string truth_json(const TrainerOptions& options, const Plan& plan, const RunFacts& facts) {
  // Until the run is complete, the planned end counts.
  const StepRange steps{facts.first_step, facts.complete ? facts.steps_done : plan.steps};
  const Patterns patterns = patterns_of(plan, steps);
  const std::string_view class_name = class_of(patterns);
  std::optional<std::string_view> cause;
  if (leaks_in(plan, steps)) {
    cause = name_of(plan.leak->cause);
  }
  JsonWriter json;
  json.begin_object().field("schema", 1).field("complete", facts.complete);
  json.field("scenario", scenario_text(options)).field("class", class_name);
  json.field("cause", cause);
  if (plan.replayed) {
    json.field("replay", name_of(plan.replayed->replay)).field("scale", plan.replayed->scale);
  }
  write_patterns(json, patterns, facts.seconds_per_step.value_or(planned_seconds_per_step(plan)));
  json.field("plateau_step", plateau_step_of(patterns));
  json.field("allocating_line", facts.lines.allocating);
  json.field("retaining_line", facts.lines.retaining);
  json.field("seed", options.seed).field("steps", plan.steps);
  json.field("first_step", facts.first_step).field("steps_done", facts.steps_done);
  json.field("seconds", facts.seconds);
  write_where(json, plan, steps, class_name);
  json.key("processes").begin_array();
  for (const TruthProcess& process : facts.processes) {
    json.begin_object().field("pid", process.pid).field("role", process.role).end_object();
  }
  json.end_array();
  json.field("workers", worker_count(plan)).field("wrapper_pid", facts.wrapper_pid).end_object();
  return json.take() + "\n";
}

}  // namespace tidemark::harness
