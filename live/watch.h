// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "live/watch_handler.h"
#include "live/watch_options.h"
#include "live/watch_system.h"

namespace tidemark::live {

// Watches a target for a command of ours, from finding it to the last line of output: one tick
// after the other goes to the sinks, the view and the run file. Returns the exit code.
// `system`: nullptr for this machine.
int watch(const WatchOptions& options, WatchHandler& handler, WatchSystem* system = nullptr);

}  // namespace tidemark::live
