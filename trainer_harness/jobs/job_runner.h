// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "trainer_harness/jobs/job.h"

namespace tidemark::harness {

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
