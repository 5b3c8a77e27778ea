// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer_harness/jobs/ledger.h"

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

}  // namespace tidemark::harness
