// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "trainer_harness/jobs/job.h"
#include "trainer_harness/trainer.h"

namespace tidemark::harness {

// run_trainer(), or a stand-in for it.
using TrainFunction =
    std::function<Result<TrainerOutcome>(const TrainerOptions&, TrainerObserver&)>;

// Runs each job inside the server, on the calling thread. An error of the trainer ends the job, a
// crash ends the server, and memory held by the allocator and by caches stays; SubprocessRunner
// avoids all three.
class InprocessRunner final : public JobRunner {
 public:
  explicit InprocessRunner(TrainFunction train) : train_(std::move(train)) {}
  JobOutcome run(const JobSpec& job, JobEvents& events) override;

 private:
  TrainFunction train_;
};

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
