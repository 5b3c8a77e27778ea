// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tracker/run/judge_options.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::tracker {

// A run and what the tracker says about it.
struct TrackResult {
  RunTracks run;
  std::optional<RunVerdict> verdict;  // nullopt: nothing could be judged
  std::optional<Metric> asked_metric;
};

TrackResult judge_tracks(RunTracks run, const JudgeOptions& options);

// 1 for a leak, 4 when nobody can tell yet, else 0.
int exit_code_of(const TrackResult& result);

}  // namespace tidemark::tracker
