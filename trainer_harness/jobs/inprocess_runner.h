// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

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

}  // namespace tidemark::harness
