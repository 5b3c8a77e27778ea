// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>

#include "common/result.h"
#include "trainer_harness/jobs/serve_jobs.h"
#include "trainer_harness/options.h"

namespace tidemark::harness {

// A training run, a job server, or the text that --help asks for.
using Command = std::variant<TrainerOptions, ServeOptions, std::string>;

// `words`: argv without the program. `use_subprocess`: the value of TRAINING_USE_SUBPROCESS, which
// says where jobs run when --isolation does not. Every error has the code kUsage.
Result<Command> parse_command_line(std::span<const std::string> words,
                                   const std::optional<std::string>& use_subprocess);

// The words after `tidemark-harness train`, without --help: the arguments of a job.
Result<TrainerOptions> parse_trainer_options(std::span<const std::string> words);

}  // namespace tidemark::harness
