// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "live/heap_looks.h"
#include "live/watch_options.h"
#include "live/watch_system.h"
#include "profiler/heap/heap_watch.h"
#include "tracker/run/judged_run.h"

namespace tidemark::live {

struct DiagnoseOptions {
  static constexpr std::int64_t kUsualDurationNs = 120 * kNsPerSecond;

  std::string input;  // a recording; empty: diagnose a job
  WatchOptions watch;
  bool injects = true;  // the tracer, into the job
  heap::HeapOptions heap;
  bool plain = false;
  tracker::JudgeOptions judge;
};

// `tidemark diagnose`: what grows, who holds it, which line made it, and what to do, on one page.
// The exit code is the verdict. `system`, `make_look`: nullptr for this machine.
int run_diagnose(const DiagnoseOptions& options, WatchSystem* system = nullptr,
                 MakeLook make_look = nullptr);

}  // namespace tidemark::live
