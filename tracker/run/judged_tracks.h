// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tracker/curve/curve_window.h"
#include "tracker/curve/judge.h"
#include "tracker/run/process_churn.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::tracker {

struct JudgedTrack {
  TrackVerdict verdict;
  JudgedCurve curve;
};

// The curves of a run that can matter, each with its verdict: the tree first where there is one,
// then the roles of several processes, the processes that train, shared segments, and the largest
// of the other processes.
struct JudgedTracks {
  std::vector<JudgedTrack> tracks;
  double tree_floor_bytes = 0.0;  // without a tree: that of the largest curve
  ProcessCounts process_counts;

  const JudgedTrack* tree(const RunTracks& run) const;
};

JudgedTracks judge_tracks(const RunTracks& run, const Options& options,
                          std::optional<Metric> metric);

// The part of a run that a verdict is about: without memory given back at its very end.
Window judged_window(const JudgedTrack& judged);

}  // namespace tidemark::tracker
