// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "live/watch_options.h"
#include "live/watch_system.h"
#include "profiler/collect/preload.h"
#include "tracker/run/judged_run.h"

namespace tidemark::live {

struct ProfileOptions {
  std::string input;  // a run file with sites; empty: start a command
  WatchOptions watch;
  collect::TraceOptions trace;
  std::uint64_t top = 10;
  bool plain = false;
  tracker::JudgeOptions judge;  // of a call stack: warm-up and least leak
};

// `tidemark profile`: which call stacks hold the growth. Around a command its status is passed on.
// `system`: nullptr for this machine.
int run_profile(const ProfileOptions& options, WatchSystem* system = nullptr);

}  // namespace tidemark::live
