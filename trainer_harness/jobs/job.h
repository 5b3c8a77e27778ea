// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::harness {

enum class JobState { kQueued, kRunning, kDone, kFailed, kCancelled };
inline constexpr std::array<std::string_view, 5> kJobStateNames = {"queued", "running", "done",
                                                                   "failed", "cancelled"};
inline std::string_view name_of(JobState state) {
  return kJobStateNames[static_cast<std::size_t>(state)];
}

enum class Isolation { kInprocess, kSubprocess };
inline constexpr std::array<std::string_view, 2> kIsolationNames = {"inprocess", "subprocess"};
inline std::string_view name_of(Isolation isolation) {
  return kIsolationNames[static_cast<std::size_t>(isolation)];
}

// What to train: the arguments of `tidemark-harness train`, the preset first.
struct JobSpec {
  int id = 0;  // from 1, in the order of their turns
  std::vector<std::string> arguments;
};

// How a job ended.
struct JobOutcome {
  JobState state = JobState::kFailed;
  std::string error;             // empty unless it failed
  std::optional<int> exit_code;  // of its process, when it had one of its own and left it orderly
  std::optional<int> signal;     // that ended its process
};

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

// All that the server knows of a job.
struct JobRecord {
  JobSpec spec;
  JobState state = JobState::kQueued;
  std::optional<pid_t> pid;  // of the process that trains; the server's own when in-process
  std::optional<std::int64_t> step;
  std::optional<double> loss;
  std::string phase;
  JobOutcome outcome;
  MemoryLedger memory;
  JobTimes times;
};

// What the server hears from a job while it runs, and what it asks of it. Called on the thread
// that called JobRunner::run.
class JobEvents {
 public:
  virtual ~JobEvents() = default;
  virtual void on_process(pid_t pid) = 0;  // it has a process; nothing was heard of it yet
  virtual void on_word() = 0;              // any sign of life of the trainer; before the others
  virtual void on_step(std::int64_t step, std::optional<double> loss) = 0;
  virtual void on_phase(std::string_view name) = 0;
  virtual void on_output(std::string_view line) = 0;  // of its log
  virtual bool cancel_requested() = 0;
  virtual bool crash_requested() = 0;  // true once: the job shall die as by a bug of its own
};

// Runs one job to its end, which nothing of it survives but, in-process, its memory.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  virtual JobOutcome run(const JobSpec& job, JobEvents& events) = 0;
};

}  // namespace tidemark::harness
