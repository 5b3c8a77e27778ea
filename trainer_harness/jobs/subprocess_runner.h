// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer_harness/jobs/job.h"

namespace tidemark::harness {

struct SubprocessOptions {
  // Program and first arguments; the job's own arguments and --progress-fd N follow.
  std::vector<std::string> trainer;
  std::int64_t grace_ns = 0;  // between SIGTERM and SIGKILL of a cancelled job
};

// Runs each job in a process group of its own, which the kernel kills when the server dies. The
// server also ends and reaps what a job leaves behind.
class SubprocessRunner final : public JobRunner {
 public:
  explicit SubprocessRunner(SubprocessOptions options) : options_(std::move(options)) {}
  JobOutcome run(const JobSpec& job, JobEvents& events) override;

 private:
  SubprocessOptions options_;
};

}  // namespace tidemark::harness
