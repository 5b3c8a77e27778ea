// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "live/watch_system.h"

namespace tidemark::live {

struct QuickLookOptions {
  std::vector<std::pair<std::string, std::string>> commands;  // names, and what each is for
};

// `tidemark` alone: finds the training job, watches it for 20 s and answers in three lines: which
// job, what its memory does, and the next command to type. Where there is no job, a list of the
// commands. The exit code: a leak, kExitUndetermined, or kExitTarget without a job; never 0, for so
// short a time does not show that nothing leaks.
// `system`: nullptr for this machine.
int run_quick_look(const QuickLookOptions& options, WatchSystem* system = nullptr);

}  // namespace tidemark::live
