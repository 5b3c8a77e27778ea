// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/profile.h"
#include "cli/profile_report.h"
#include "cli/profile_worker.h"
#include "common/clock.h"
#include "common/records.h"
#include "common/result.h"
#include "common/step_count.h"
#include "monitor/launch.h"
#include "profiler/reader/trace_directory.h"
#include "tracker/site_tracks.h"

namespace tidemark::cli {

// The allocation tracer in a command that somebody else watches: hand it the launch, every tick and
// the end. `options` outlives it. Not thread-safe.
class TracedLaunch {
 public:
  explicit TracedLaunch(const ProfileOptions& options)
      : options_(options), start_ns_(SystemClock().monotonic_ns()) {}

  // Before the command is started.
  Status prepare(monitor::LaunchOptions& launch);
  void begin(const RunInfo& info);
  // Adds what the tracer has told since to a tick, before anybody else sees it.
  void complete(Tick& tick);
  void add(const Tick& tick) { (void)builder_.add(tick); }
  void process_ended(const ProcessRecord& process) { (void)builder_.process_ended(process); }
  // The last look; one more tick is to be completed.
  void finish();

  // Which call stacks grow. It refers to this object. nullopt: no process could be traced.
  std::optional<ProfileReport> report() const;

 private:
  const ProfileOptions& options_;
  std::int64_t start_ns_;
  std::optional<reader::TraceDirectory> directory_;
  std::unique_ptr<ProfileWorker> worker_;
  tracker::SiteTrackBuilder builder_;
  StepCount steps_;
  std::string command_;
  std::vector<std::string> problems_;
};

}  // namespace tidemark::cli
