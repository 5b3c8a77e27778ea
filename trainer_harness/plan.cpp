// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/plan.h"

#include <algorithm>
#include <cmath>

#include "common/units.h"
#include "trainer_harness/replay_curves.h"

namespace tidemark::harness {
namespace {

constexpr std::uint64_t kDefaultSteps = 400;

std::uint64_t bytes_of(double mb) {
  return static_cast<std::uint64_t>(std::llround(mb * static_cast<double>(kMiB)));
}

// At least one step, also of a short run.
std::uint64_t share_of(std::uint64_t steps, double share) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(steps) * share));
}

// Flat at first, so that the growth cannot be a warm-up; then growth for more than the 200 steps
// that the automatic warm-up allowance of `tidemark track` needs.
std::uint64_t steps_before_leak(std::uint64_t steps) {
  constexpr std::uint64_t kStepsToDecide = 300;
  const std::uint64_t rest = steps > kStepsToDecide ? steps - kStepsToDecide : 0;
  return std::clamp(rest, share_of(steps, 0.1), share_of(steps, 0.25));
}

Plan::Leak plan_leak(const TrainerOptions& options, std::uint64_t steps) {
  Plan::Leak leak;
  leak.cause = options.cause;
  leak.after_step = options.from_step.value_or(steps_before_leak(steps));
  const std::uint64_t leaking = steps > leak.after_step ? steps - leak.after_step : 1;
  leak.bytes_per_step =
      bytes_of(options.mb_per_step.value_or(options.mb / static_cast<double>(leaking)));
  return leak;
}

}  // namespace

Plan plan_run(const TrainerOptions& options) {
  const auto does = [&](Scenario scenario) { return options.scenarios.contains(scenario); };
  const std::uint64_t all_bytes = bytes_of(options.mb);
  Plan plan;
  plan.steps = options.steps.value_or(does(Scenario::kReplay) ? facts_of(options.replay).steps
                                                              : kDefaultSteps);
  plan.step_time_s = options.step_time_s;
  plan.epoch_steps = share_of(plan.steps, 0.2);
  plan.batch = options.batch;
  plan.cleanup_every = options.cleanup_every.value_or(0);
  plan.eval_every = options.eval_every.value_or(0);
  if (does(Scenario::kSteady)) {
    plan.base_bytes = all_bytes;
  }
  if (does(Scenario::kWarmup)) {
    plan.sample_bytes = all_bytes / plan.epoch_samples();
  }
  if (does(Scenario::kSpikes)) {
    plan.eval_every = options.eval_every.value_or(share_of(plan.steps, 0.125));
    plan.eval_bytes = all_bytes;
  }
  plan.eval_batches = plan.eval_every == 0 ? 0 : std::max<std::uint64_t>(2, plan.eval_every / 5);
  if (does(Scenario::kLeak)) {
    plan.leak = plan_leak(options, plan.steps);
  }
  if (!options.checkpoint_path.empty() || does(Scenario::kStaircase)) {
    plan.checkpoint_every = share_of(plan.steps, 0.1);
  }
  if (does(Scenario::kStaircase)) {
    plan.checkpoint_bytes =
        all_bytes / std::max<std::uint64_t>(1, plan.steps / plan.checkpoint_every);
  }
  if (does(Scenario::kSawtooth)) {
    plan.collect_every = share_of(plan.steps, 0.05);
    plan.cycle_bytes_per_step = all_bytes / plan.collect_every;
  }
  if (does(Scenario::kFragmentation)) {
    plan.fragment_until_step = share_of(plan.steps, 0.2);
    plan.fragment_bytes_per_step = all_bytes / plan.fragment_until_step;
  }
  if (does(Scenario::kCompileWorkers)) {
    const std::uint64_t half_bytes = bytes_of(options.worker_mb) / 2;
    plan.pool = {options.workers, half_bytes, half_bytes,
                 options.quiesce ? share_of(plan.steps, 0.5) : 0};
  }
  if (does(Scenario::kDataloaderCow)) {
    plan.copy_on_write = {options.workers, all_bytes, share_of(plan.steps, 0.4)};
  }
  if (does(Scenario::kReplay)) {
    plan.replayed = {options.replay, options.scale, options.seed};
  }
  return plan;
}

double copied_share(const Plan::CopyOnWrite& plan, std::uint64_t step) {
  return std::min(1.0, static_cast<double>(step) / static_cast<double>(plan.until_step));
}

std::uint64_t replayed_bytes(const Plan::Replayed& plan, std::uint64_t step) {
  return static_cast<std::uint64_t>(
      std::llround(replayed_mb(plan.replay, step, plan.seed) * kLoggedMb * plan.scale));
}

}  // namespace tidemark::harness
