// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/records.h"
#include "common/result.h"
#include "live/watch_options.h"
#include "live/watch_system.h"
#include "profiler/collect/preload.h"
#include "tracker/run/judged_run.h"
#include "tracker/sites/site_ranking.h"

namespace tidemark::live {

// Which processes of a tree that runs already get the tracer.
struct AttachScope {
  bool all = false;
  std::optional<Role> role;  // else the trainer, or all ranks
};

struct ProfileOptions {
  std::string input;  // a run file with sites; empty: start a command
  WatchOptions watch;
  collect::TraceOptions trace;
  std::uint64_t top = 10;
  tracker::Grouping by = tracker::Grouping::kLine;  // what text leads with
  bool plain = false;
  AttachScope scope;
  std::int64_t attach_timeout_ns = 10 * kNsPerSecond;
  std::optional<pid_t> detach;  // only this: take the tracer out of a process
  tracker::JudgeOptions judge;  // of a call stack: warm-up and least leak
};

// `tidemark profile`: which call stacks hold the growth. Around a command its status is passed on.
// `system`: nullptr for this machine.
int run_profile(const ProfileOptions& options, WatchSystem* system = nullptr);

}  // namespace tidemark::live
