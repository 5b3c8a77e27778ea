// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/watch_options.h"
#include "common/units.h"
#include "tracker/curve/options.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::cli {

struct MonitorOptions {
  WatchOptions watch;
  bool plain = false;   // lines also where there could be more than lines
  std::string replay;   // a recording to play instead of watching; empty: none
  double speed = 20.0;  // of the replay
  // Of the dashboard's verdict.
  tracker::Warmup warmup;
  std::optional<Rate> min_leak;
  std::optional<tracker::Metric> metric;
};

int run_monitor(const MonitorOptions& options);

}  // namespace tidemark::cli
