// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_report.h"

#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/json_writer.h"
#include "common/text.h"
#include "common/units.h"

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

constexpr const char* kRow =
    "{:>4}  {:<9}  {:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>8}  {:>7}  {:>9}\n";

std::string bytes_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "?";
}

std::string percent_text(const std::optional<double>& percent) {
  return percent ? fmt::format("{:.1f} %", *percent) : "-";
}

std::string row_text(const JobRecord& job) {
  const auto startup = startup_seconds(job.times);
  const auto rate = steps_per_second(job.times);
  return fmt::format(
      kRow, job.spec.id, name_of(job.state), job.step ? std::to_string(*job.step) : "-",
      bytes_text(job.memory.before_bytes), bytes_text(job.memory.peak_bytes),
      bytes_text(job.memory.after_bytes), bytes_text(returned_bytes(job.memory)),
      startup ? format_duration(*startup) : "-", rate ? fmt::format("{:.1f}", *rate) : "-",
      percent_text(isolation_overhead_percent(job.times)));
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

std::string job_end_text(const JobRecord& job) {
  std::string text =
      fmt::format("job {}: {}, {} -> {} -> {}", job.spec.id, name_of(job.state),
                  bytes_text(job.memory.before_bytes), bytes_text(job.memory.peak_bytes),
                  bytes_text(job.memory.after_bytes));
  if (!job.outcome.error.empty()) {
    text += ": " + escape_text(job.outcome.error);
  }
  return text;
}

std::string ledger_text(const ServerStatus& status) {
  std::string text = fmt::format(kRow, "job", "state", "step", "before", "peak", "after",
                                 "returned", "start-up", "steps/s", "isolation");
  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> last;
  for (const JobRecord& job : status.jobs) {
    text += row_text(job);
    if (!first) {
      first = job.memory.before_bytes;
    }
    last = job.memory.after_bytes ? job.memory.after_bytes : last;
  }
  text += fmt::format(
      "\nisolation {}: the server had {} before the first job and {} after the "
      "last.\n",
      name_of(status.isolation), bytes_text(first), bytes_text(last));
  for (const JobRecord& job : status.jobs) {
    if (!job.outcome.error.empty()) {
      text += fmt::format("job {} failed: {}\n", job.spec.id, escape_text(job.outcome.error));
    }
  }
  if (status.failed_updates > 0) {
    text += fmt::format("{} updates of the status file failed\n", status.failed_updates);
  }
  return text;
}

}  // namespace tidemark::harness
