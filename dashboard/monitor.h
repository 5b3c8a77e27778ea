// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "common/units.h"
#include "live/watch_options.h"
#include "tracker/run/judged_run.h"

namespace tidemark::dashboard {

struct MonitorOptions {
  live::WatchOptions watch;
  bool plain = false;     // lines also where there could be more than lines
  std::string replay;     // a recording to play instead of watching; empty: none
  double speed = 20.0;    // of the replay
  bool keeps_run = true;  // on a terminal, see live/kept_runs.h
  bool last_look = true;  // see live/last_looks.h
  // Of the dashboard's verdict.
  tracker::JudgeOptions judge;
};

int run_monitor(const MonitorOptions& options);

}  // namespace tidemark::dashboard
