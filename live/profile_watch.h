// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "common/records.h"
#include "live/profile.h"

namespace tidemark::live {

// Starts the command with the tracer in it (or wakes the tracer that sleeps in a process) and
// watches until it ends. The exit code is the command's. `on_tick` hears of every tick.
int watch_and_profile(const ProfileOptions& options,
                      std::function<void(const Tick& tick)> on_tick = {});

}  // namespace tidemark::live
