// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/truth.h"

#include "common/json_writer.h"
#include "trainer_harness/patterns.h"

namespace tidemark::harness {
namespace {

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
  // Until the end is known it is the planned one.
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
