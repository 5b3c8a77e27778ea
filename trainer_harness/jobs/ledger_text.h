// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer_harness/jobs/status_file.h"

namespace tidemark::harness {

// "job 2: done, 41 MiB -> 143 MiB -> 41 MiB".
std::string job_end_text(const JobRecord& job);

// The table of all jobs, what became of the memory in the end, and the errors.
std::string ledger_text(const ServerStatus& status);

}  // namespace tidemark::harness
