// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/watch_options.h"

namespace tidemark::cli {

struct MonitorOptions {
  WatchOptions watch;
  bool plain = false;  // lines also where there could be more than lines
};

int run_monitor(const MonitorOptions& options);

}  // namespace tidemark::cli
