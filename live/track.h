// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "live/watch_options.h"
#include "live/watch_system.h"
#include "tracker/run/judged_run.h"

namespace tidemark::live {

struct TrackOptions {
  std::string input;  // any recording that we read, "-": the standard input; empty: watch a target
  bool judges_last = false;  // the last run that was kept, see live/kept_runs.h
  WatchOptions watch;        // of a recording only `json` counts
  bool keeps_run = true;     // for the next time
  tracker::JudgeOptions judge;
};

// `tidemark track`: warm-up, spikes or leak? The exit code is the answer.
// `system`: nullptr for this machine.
int run_track(const TrackOptions& options, WatchSystem* system = nullptr);

}  // namespace tidemark::live
