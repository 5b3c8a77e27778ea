// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/recording_sink.h"
#include "common/records.h"
#include "common/result.h"
#include "common/step_count.h"
#include "live/attach_targets.h"
#include "live/launch/launch.h"
#include "live/profile.h"
#include "live/tree_attachment.h"
#include "profiler/collect/collector_thread.h"
#include "profiler/collect/untraced_reason.h"
#include "profiler/reader/trace_directory.h"
#include "report/profile_report.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::live {

// The allocation tracer in what somebody else watches: hand it the launch, every tick and the end.
// `options` outlives it. Not thread-safe.
class TracedLaunch final : public RecordingSink {
 public:
  explicit TracedLaunch(const ProfileOptions& options)
      : options_(options), start_ns_(SystemClock().monotonic_ns()) {}

  // Before the command is started.
  Status prepare(LaunchOptions& launch);
  // For processes that run already. What was done, for people, a line for each.
  Result<std::vector<std::string>> attach(const AttachTargets& targets);
  // Adds what the tracer has told since to a tick, before anybody else sees it.
  void complete(Tick& tick);
  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override { return builder_.add(tick); }
  Status process_ended(const ProcessRecord& process) override {
    return builder_.process_ended(process);
  }
  Status end(double t_s) override { return builder_.end(t_s); }
  // The last look. True: one more tick is to be completed. Programs that are started from now on
  // are not traced.
  bool finish();

  // False: no process could be traced.
  bool has_traced() const { return !builder_.sites().empty(); }
  // Which call stacks grow. It refers to this object.
  report::ProfileReport report() const;

 private:
  void make_worker(reader::CollectorOptions collecting);
  void add_untraced(Tick& tick) const;
  void detach();
  void add_attach_problems();

  const ProfileOptions& options_;
  std::int64_t start_ns_;
  std::optional<reader::TraceDirectory> directory_;
  std::optional<TreeAttachment> attached_;
  collect::TracerPlace place_;
  std::unique_ptr<collect::ProfileWorker> worker_;
  tracker::SiteTrackBuilder builder_;
  StepCount steps_;
  std::string command_;
  std::vector<std::string> problems_;
};

}  // namespace tidemark::live
