// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job.h"

#include <algorithm>

#include "common/clock.h"

namespace tidemark::harness {
namespace {

std::optional<double> seconds_between(const std::optional<std::int64_t>& from_ns,
                                      const std::optional<std::int64_t>& to_ns) {
  if (!from_ns || !to_ns) {
    return std::nullopt;
  }
  return to_seconds(*to_ns - *from_ns);
}

}  // namespace

std::optional<std::uint64_t> returned_bytes(const MemoryLedger& memory) {
  if (!memory.peak_bytes || !memory.after_bytes) {
    return std::nullopt;
  }
  return *memory.peak_bytes - std::min(*memory.peak_bytes, *memory.after_bytes);
}

std::optional<double> returned_percent(const MemoryLedger& memory) {
  const auto returned = returned_bytes(memory);
  if (!returned || !memory.before_bytes || *memory.peak_bytes <= *memory.before_bytes) {
    return std::nullopt;
  }
  const auto taken = static_cast<double>(*memory.peak_bytes - *memory.before_bytes);
  return 100.0 * static_cast<double>(*returned) / taken;
}

std::optional<double> startup_seconds(const JobTimes& times) {
  return seconds_between(times.submitted_ns, times.first_step_ns);
}

std::optional<double> wall_seconds(const JobTimes& times) {
  return seconds_between(times.submitted_ns, times.ended_ns);
}

std::optional<double> steps_per_second(const JobTimes& times) {
  const auto seconds = seconds_between(times.first_step_ns, times.last_step_ns);
  if (!seconds || *seconds <= 0.0 || times.steps_seen < 2) {
    return std::nullopt;
  }
  return static_cast<double>(times.steps_seen - 1) / *seconds;
}

std::optional<double> isolation_overhead_percent(const JobTimes& times) {
  const auto begin = seconds_between(times.submitted_ns, times.first_message_ns);
  const auto work = seconds_between(times.first_message_ns, times.last_message_ns);
  const auto end = seconds_between(times.last_message_ns, times.ended_ns);
  if (!begin || !work || !end || *work <= 0.0) {
    return std::nullopt;
  }
  return 100.0 * (*begin + *end) / *work;
}

}  // namespace tidemark::harness
