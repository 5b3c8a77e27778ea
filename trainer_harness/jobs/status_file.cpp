// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/status_file.h"

#include <array>

#include "common/clock.h"
#include "common/json_writer.h"

namespace tidemark::harness {
namespace {

constexpr std::array<std::string_view, 3> kServerStateNames = {"running", "done", "stopped"};

void add_text_or_null(JsonWriter& json, std::string_view name, std::string_view text) {
  json.key(name);
  if (text.empty()) {
    json.value(nullptr);
  } else {
    json.value(text);
  }
}

void add_memory(JsonWriter& json, const MemoryLedger& memory) {
  json.key("memory").begin_object();
  json.field("before_bytes", memory.before_bytes);
  json.field("peak_bytes", memory.peak_bytes);
  json.field("after_bytes", memory.after_bytes);
  json.field("returned_bytes", returned_bytes(memory));
  json.field("returned_percent", returned_percent(memory));
  json.end_object();
}

void add_job(JsonWriter& json, const JobRecord& job) {
  json.begin_object();
  json.field("id", job.spec.id);
  json.field("state", name_of(job.state));
  json.key("arguments").begin_array();
  for (const std::string& argument : job.spec.arguments) {
    json.value(argument);
  }
  json.end_array();
  json.field("pid", job.pid);
  json.field("step", job.step);
  json.field("loss", job.loss);
  add_text_or_null(json, "phase", job.phase);
  add_text_or_null(json, "error", job.outcome.error);
  json.field("exit_code", job.outcome.exit_code);
  json.field("signal", job.outcome.signal);
  add_memory(json, job.memory);
  json.field("startup_s", startup_seconds(job.times));
  json.field("wall_s", wall_seconds(job.times));
  json.field("steps_per_s", steps_per_second(job.times));
  json.field("isolation_overhead_percent", isolation_overhead_percent(job.times));
  json.end_object();
}

}  // namespace

std::string status_json(const ServerStatus& status) {
  JsonWriter json;
  json.begin_object();
  json.field("schema", 1);
  json.field("server_pid", status.server_pid);
  json.field("isolation", name_of(status.isolation));
  json.field("state", kServerStateNames[static_cast<std::size_t>(status.state)]);
  json.field("updated_s", to_seconds(status.updated_wall_ns));
  json.field("failed_updates", status.failed_updates);
  json.key("jobs").begin_array();
  for (const JobRecord& job : status.jobs) {
    add_job(json, job);
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace tidemark::harness
