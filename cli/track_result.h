// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cli/track.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::cli {

// A run and what the tracker says about it.
struct TrackResult {
  tracker::RunTracks run;
  std::optional<tracker::RunVerdict> verdict;  // nullopt: nothing could be judged
  std::optional<tracker::Metric> asked_metric;
};

TrackResult judge_tracks(tracker::RunTracks run, const TrackOptions& options);

// 1 for a leak, 4 when nobody can tell yet, else 0.
int exit_code_of(const TrackResult& result);

}  // namespace tidemark::cli
