// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/watch_options.h"

namespace tidemark::cli {

struct MonitorOptions {
  WatchOptions watch;
  bool plain = false;   // lines also where there could be more than lines
  std::string replay;   // a recording to play instead of watching; empty: none
  double speed = 20.0;  // of the replay
};

int run_monitor(const MonitorOptions& options);

}  // namespace tidemark::cli
