// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainer_harness/jobs/inprocess_runner.h"

namespace tidemark::harness {

// `tidemark-harness serve-jobs WORDS...`; returns the exit code. `train` runs a job in-process,
// `trainer_argv` (path, first arguments) starts one as a process.
int serve_jobs(std::span<const std::string> words, const TrainFunction& train,
               const std::vector<std::string>& trainer_argv);

}  // namespace tidemark::harness
