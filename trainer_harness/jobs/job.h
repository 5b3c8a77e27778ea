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

// What to train: the arguments of `tidemark-harness train`, the scenario first.
struct JobSpec {
  int id = 0;  // from 1, in the order in which they run
  std::vector<std::string> arguments;
};

// How a job ended.
struct JobOutcome {
  JobState state = JobState::kFailed;
  std::string error;             // empty unless it failed
  std::optional<int> exit_code;  // of its own process, if it exited
  std::optional<int> signal;     // that killed its own process
};

// Footprints (anonymous + shared memory + swap) of the server and one job together. Libraries,
// which are mapped from files, do not count.
struct MemoryLedger {
  std::optional<std::uint64_t> before_bytes;
  std::optional<std::uint64_t> peak_bytes;
  std::optional<std::uint64_t> after_bytes;
};

// What was freed between the peak and the end of the job.
std::optional<std::uint64_t> returned_bytes(const MemoryLedger& memory);
// The same as a share of what the job had allocated: 100 is "4 -> 18 -> 4", 0 is "4 -> 18 -> 18".
// Unknown when the job allocated nothing.
std::optional<double> returned_percent(const MemoryLedger& memory);

// Times in the life of a job, on the monotonic clock.
struct JobTimes {
  std::optional<std::int64_t> submitted_ns;
  std::optional<std::int64_t> first_message_ns;  // from the trainer
  std::optional<std::int64_t> first_step_ns;     // the end of the first step
  std::optional<std::int64_t> last_step_ns;
  std::optional<std::int64_t> last_message_ns;  // from the trainer
  std::optional<std::int64_t> ended_ns;         // no process of the job is left
  std::uint64_t steps_seen = 0;
};

// From submission to the end of the first step.
std::optional<double> startup_seconds(const JobTimes& times);
std::optional<double> wall_seconds(const JobTimes& times);
// Between the first and the last step: start-up does not count.
std::optional<double> steps_per_second(const JobTimes& times);
// The cost of a process per job: the time to the trainer's first message (fork, exec, loading) and
// from its last message to the end of the process, relative to the time between the two.
std::optional<double> isolation_overhead_percent(const JobTimes& times);

// Everything the server knows about a job.
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

// Receives what a job reports while it runs, and says what should happen to the job. Called on the
// thread that called JobRunner::run.
class JobEvents {
 public:
  virtual ~JobEvents() = default;
  virtual void on_process(pid_t pid) = 0;  // its process has started
  virtual void on_message() = 0;  // any message from the trainer; called before on_step, on_phase
  virtual void on_step(std::int64_t step, std::optional<double> loss) = 0;
  virtual void on_phase(std::string_view name) = 0;
  virtual void on_output(std::string_view line) = 0;  // one line of its log
  virtual bool cancel_requested() = 0;
  virtual bool crash_requested() = 0;  // true once: kill the job as a bug of its own would
};

// Runs one job to its end. Nothing of the job is left then, except for its memory in-process.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  virtual JobOutcome run(const JobSpec& job, JobEvents& events) = 0;
};

}  // namespace tidemark::harness
