// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/profile.h"

namespace tidemark::cli {

// Starts the command with the tracer in it (or wakes the tracer that sleeps in a process) and
// watches until it ends. The exit code is the command's.
int watch_and_profile(const ProfileOptions& options);

}  // namespace tidemark::cli
