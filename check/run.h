// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/left_behind.h"
#include "check/spec.h"
#include "common/records.h"
#include "live/profile.h"
#include "live/traced_launch.h"
#include "live/watch_handler.h"
#include "live/watch_system.h"
#include "tracker/compare/budget.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::check {

// The tracer of one run, with the options that it refers to.
struct CheckTracing {
  live::ProfileOptions options;
  live::TracedLaunch launch{options};
  std::optional<report::ProfileReport> report;  // of `launch`; nullopt: no process could be traced

  // Once the run is over: to rank all call stacks takes its time.
  void conclude() {
    if (launch.has_traced()) {
      report = launch.report();
    }
  }
};

// One run of the command of a check: what was seen.
struct CheckRun {
  live::WatchEnding ending;
  RunInfo info;
  tracker::JudgedRun track;
  std::optional<tracker::RunVerdict> gpu;  // of the same curves, judged on GPU memory
  LeftBehind left;
  double seconds = 0.0;
  std::unique_ptr<CheckTracing> tracing;  // nullptr: nobody traced
  std::string tracing_problem;            // why not, though it was wanted; empty: not wanted

  // nullptr: nobody traced, or no process could be.
  const report::ProfileReport* profile() const {
    return tracing != nullptr && tracing->report ? &*tracing->report : nullptr;
  }
  bool has_started() const { return ending.command_status.has_value(); }
  // Figures to decide on.
  tracker::MeasuredRun measured() const;
};

// How a check is run, beside what it is.
struct CheckPlace {
  LeftBehindMeter& meter;
  std::string output;                   // run file; empty: none
  bool stdout_is_ours = false;          // the command's output goes to stderr
  live::WatchSystem* system = nullptr;  // nullptr: this machine
};

// Runs the command once and watches it to its end, with its stray processes.
CheckRun run_once(const CheckSpec& spec, const CheckPlace& place);

}  // namespace tidemark::check
