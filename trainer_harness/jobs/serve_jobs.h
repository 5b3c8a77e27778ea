// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer_harness/jobs/job_runners.h"
#include "trainer_harness/jobs/job_server.h"

namespace tidemark::harness {

struct ServeOptions {
  JobServerOptions server;
  std::int64_t grace_ns = 10'000'000'000;
  bool json = false;
  bool quiet = false;  // do not show the output of the jobs
};

// `tidemark-harness serve-jobs`; returns the exit code. `train` runs a job in-process,
// `trainer_argv` (path, first arguments) starts one as a process.
int serve_jobs(const ServeOptions& options, const TrainFunction& train,
               const std::vector<std::string>& trainer_argv);

}  // namespace tidemark::harness
