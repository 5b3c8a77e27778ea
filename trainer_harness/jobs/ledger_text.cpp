// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/ledger_text.h"

#include <optional>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"

namespace tidemark::harness {
namespace {

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
