// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/truth.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "common/io.h"
#include "common/json_writer.h"
#include "trainer_harness/replay_curves.h"

namespace tidemark::harness {
namespace {

struct WarmupPattern {
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;
  std::uint64_t growth_bytes = 0;
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

void add_replayed(const Plan::Replayed& plan, Patterns& patterns) {
  const ReplayFacts facts = facts_of(plan.replay);
  const double byte_scale = plan.scale * 1024.0 * 1024.0;
  const auto bytes = [&](double mb) {
    return static_cast<std::uint64_t>(std::llround(mb * byte_scale));
  };
  if (facts.plateau_step) {
    patterns.warmups.push_back(
        {facts.warmup_from_step, *facts.plateau_step, bytes(facts.warmup_mb)});
  }
  if (facts.spike_period_steps) {
    patterns.spikes.push_back({*facts.spike_period_steps, bytes(facts.spike_mb)});
  }
  if (facts.leak_mb_per_step > 0) {
    patterns.leaks.push_back({facts.leaks_in_jumps, 0, facts.leak_mb_per_step * byte_scale});
  }
}

Patterns patterns_of(const Plan& plan) {
  Patterns patterns;
  if (plan.sample_bytes > 0) {
    patterns.warmups.push_back({0, plan.epoch_steps, plan.cache_bytes()});
  }
  if (plan.fragment_bytes_per_step > 0) {
    patterns.warmups.push_back(
        {0, plan.fragment_until_step, plan.fragment_bytes_per_step * plan.fragment_until_step});
  }
  if (plan.copy_on_write) {
    patterns.warmups.push_back({0, plan.copy_on_write->until_step,
                                plan.copy_on_write->heap_bytes * plan.copy_on_write->workers});
  }
  if (plan.eval_bytes > 0) {
    patterns.spikes.push_back({plan.eval_every, plan.eval_bytes});
  }
  if (plan.cycle_bytes_per_step > 0) {
    const std::uint64_t period = plan.cleanup_every == 0
                                     ? plan.collect_every
                                     : std::min(plan.collect_every, plan.cleanup_every);
    patterns.spikes.push_back({period, plan.cycle_bytes_per_step * period});
  }
  if (plan.leak && plan.leak->bytes_per_step > 0 && plan.leak->after_step < plan.steps) {
    patterns.leaks.push_back(
        {false, plan.leak->after_step, static_cast<double>(plan.leak->bytes_per_step)});
  }
  if (plan.checkpoint_bytes > 0) {
    patterns.leaks.push_back(
        {true, plan.checkpoint_every,
         static_cast<double>(plan.checkpoint_bytes) / static_cast<double>(plan.checkpoint_every)});
  }
  if (plan.replayed) {
    add_replayed(*plan.replayed, patterns);
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
    last = std::max(last.value_or(0), warmup.to_step);
  }
  return last;
}

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

void write_where(JsonWriter& json, const Plan& plan) {
  json.key("where").begin_object();
  if (plan.leak && plan.leak->cause == Cause::kShm) {
    json.field("kind", "shm").field("role", nullptr);
  } else if (plan.copy_on_write && class_of(plan) == "warmup") {
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

std::string_view class_of(const Plan& plan) { return class_of(patterns_of(plan)); }

double planned_seconds_per_step(const Plan& plan) {
  const double eval_share = plan.eval_every == 0 ? 0.0
                                                 : static_cast<double>(plan.eval_batches) /
                                                       static_cast<double>(plan.eval_every);
  return plan.step_time_s * (1.0 + eval_share);
}

std::string truth_json(const TrainerOptions& options, const Plan& plan, const RunFacts& facts) {
  const Patterns patterns = patterns_of(plan);
  std::optional<std::string_view> cause;
  if (plan.leak) {
    cause = name_of(plan.leak->cause);
  }
  JsonWriter json;
  json.begin_object().field("schema", 1).field("complete", facts.complete);
  json.field("scenario", scenario_text(options)).field("class", class_of(patterns));
  json.field("cause", cause);
  if (plan.replayed) {
    json.field("replay", name_of(plan.replayed->replay)).field("scale", plan.replayed->scale);
  }
  write_patterns(json, patterns, facts.seconds_per_step.value_or(planned_seconds_per_step(plan)));
  json.field("plateau_step", plateau_step_of(patterns));
  json.field("allocating_line", facts.lines.allocating);
  json.field("retaining_line", facts.lines.retaining);
  json.field("seed", options.seed).field("steps", plan.steps);
  json.field("steps_done", facts.steps_done).field("seconds", facts.seconds);
  write_where(json, plan);
  json.key("processes").begin_array();
  for (const TruthProcess& process : facts.processes) {
    json.begin_object().field("pid", process.pid).field("role", process.role).end_object();
  }
  json.end_array();
  json.field("workers", worker_count(plan)).field("wrapper_pid", facts.wrapper_pid).end_object();
  return json.take() + "\n";
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  const std::string draft = path + "." + std::to_string(::getpid()) + ".new";
  auto file = open_file(draft, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!file) {
    return file.error();
  }
  if (const Status written = write_all(file->get(), text); !written) {
    ::unlink(draft.c_str());
    return written;
  }
  if (std::rename(draft.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(draft.c_str());
    return system_error(path, error);
  }
  return ok();
}

}  // namespace tidemark::harness
