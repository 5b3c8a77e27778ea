// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer_harness/jobs/job.h"

namespace tidemark::harness {

enum class ServerState { kRunning, kDone, kStopped };

struct ServerStatus {
  pid_t server_pid = 0;
  Isolation isolation = Isolation::kSubprocess;
  ServerState state = ServerState::kRunning;
  std::int64_t updated_wall_ns = 0;
  std::uint64_t failed_updates = 0;  // of the status file
  std::vector<JobRecord> jobs;
};

// One JSON object, schema 1, with a line end.
std::string status_json(const ServerStatus& status);

// "job 2: done, 41 MiB -> 143 MiB -> 41 MiB".
std::string job_end_text(const JobRecord& job);

// A table of all jobs, the memory before the first and after the last, and the errors.
std::string ledger_text(const ServerStatus& status);

}  // namespace tidemark::harness
