// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace tidemark::harness {

// What one job did to the memory of server and job together. Footprints: anonymous + shared memory
// + swap, so that libraries which come and go with a process do not count.
struct MemoryLedger {
  std::optional<std::uint64_t> before_bytes;
  std::optional<std::uint64_t> peak_bytes;
  std::optional<std::uint64_t> after_bytes;
};

// What the kernel got back between the peak and the end of the job.
std::optional<std::uint64_t> returned_bytes(const MemoryLedger& memory);
// The same as a share of what the job had taken: 100 is "4 -> 18 -> 4", 0 is "4 -> 18 -> 18".
// Unknown when the job took nothing.
std::optional<double> returned_percent(const MemoryLedger& memory);

// When a job passed its stations, on the monotonic clock.
struct JobTimes {
  std::optional<std::int64_t> submitted_ns;
  std::optional<std::int64_t> alive_ns;       // first word of the trainer
  std::optional<std::int64_t> first_step_ns;  // the first step was done
  std::optional<std::int64_t> last_step_ns;
  std::optional<std::int64_t> last_word_ns;  // of the trainer, whatever it said
  std::optional<std::int64_t> ended_ns;      // nothing is left of the job
  std::uint64_t steps_seen = 0;
};

// From submission until the first step was done.
std::optional<double> startup_seconds(const JobTimes& times);
std::optional<double> wall_seconds(const JobTimes& times);
// Between the first and the last step, so that starting does not count.
std::optional<double> steps_per_second(const JobTimes& times);
// What a process of its own costs a job: the time until its trainer speaks (fork, exec, loading)
// and from its last word until the process is gone, as a share of the time between the two.
std::optional<double> isolation_overhead_percent(const JobTimes& times);

}  // namespace tidemark::harness
