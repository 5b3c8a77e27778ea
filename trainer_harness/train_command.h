// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace tidemark::harness {

// `tidemark-harness train ...`: its exit code. SIGTERM and SIGINT end the run after a checkpoint,
// as a success.
int train_command(std::span<const std::string> words);

}  // namespace tidemark::harness
