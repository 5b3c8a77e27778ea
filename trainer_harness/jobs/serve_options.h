// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/result.h"
#include "trainer_harness/jobs/job_server.h"

namespace tidemark::harness {

struct ServeOptions {
  JobServerOptions server;
  std::int64_t grace_ns = 10'000'000'000;
  bool json = false;
  bool quiet = false;  // without the jobs' own output
  bool help = false;
};

// The words after `tidemark-harness serve-jobs`. `use_subprocess` is the value of the environment
// variable TRAINING_USE_SUBPROCESS; --isolation goes before it.
Result<ServeOptions> parse_serve_options(std::span<const std::string> words,
                                         const std::optional<std::string>& use_subprocess);

std::string serve_usage();

}  // namespace tidemark::harness
