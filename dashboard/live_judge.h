// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/records.h"
#include "dashboard/dashboard_model.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/track_builder.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::dashboard {

// Collects the curves for a verdict that is given again and again while the run goes on. Of a tree
// with a thousand processes only the larger ones get a curve of their own; all are in their role
// and in the tree. Not thread-safe.
class LiveJudge {
 public:
  static constexpr std::size_t kMostProcesses = 48;

  void begin(const RunInfo& info);
  // From now on.
  void set_limit(std::optional<std::uint64_t> bytes, std::string source);
  void add(const Tick& tick);
  // A copy of the curves, for tracker::judge_run(): cheap enough to take while others wait.
  tracker::RunTracks tracks() const;

 private:
  bool admits(const ProcessSample& sample, double least_bytes);

  tracker::TrackBuilder builder_;
  std::optional<double> limit_bytes_;
  std::string limit_source_;
  std::unordered_set<ProcessKey> admitted_;
  std::unordered_map<ProcessKey, ProcessRecord> waiting_;  // alive and not admitted
};

// When to judge again, so that judging takes at most a hundredth of the time.
double next_judgement_s(double now_s, double cost_s);

// Follows the lines of a run that an allocation tracer is in. Not thread-safe.
class SiteJudge {
 public:
  void add(const Tick& tick) { (void)builder_.add(tick); }  // there is no file behind it
  // Those that grow, the fastest first. Takes time linear in what was added.
  std::vector<SiteRow> rows(const tracker::JudgeOptions& judging, std::size_t most) const;

 private:
  tracker::SiteTrackBuilder builder_;
};

}  // namespace tidemark::dashboard
