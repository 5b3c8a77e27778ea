// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "live/explain.h"
#include "live/heap_looks.h"
#include "live/watch_options.h"
#include "live/watch_system.h"
#include "profiler/heap/heap_watch.h"
#include "tracker/run/judged_run.h"

namespace tidemark::live {

struct DiagnoseOptions {
  std::string input;  // a recording; empty: diagnose a job
  WatchOptions watch;
  bool injects = true;      // the tracer, into the job
  bool intervenes = false;  // then: what is it not? see InterventionThread
  heap::HeapOptions heap;
  bool plain = false;
  tracker::JudgeOptions judge;
  std::int64_t usual_duration_ns = 120 * kNsPerSecond;

  std::int64_t duration_ns() const { return watch.duration_ns.value_or(usual_duration_ns); }
};

// `tidemark diagnose`: what grows, who holds it, which line made it, and what to do, on one page.
// The exit code is the verdict. `system`, `make_look`, `read_ledger`: nullptr for this machine.
int run_diagnose(const DiagnoseOptions& options, WatchSystem* system = nullptr,
                 MakeLook make_look = nullptr, ReadLedger read_ledger = nullptr);

}  // namespace tidemark::live
