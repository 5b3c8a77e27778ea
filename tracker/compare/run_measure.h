// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tracker/curve/reading.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::tracker {

// How a run grew, as the curve tells that speaks for it.
struct MeasuredGrowth {
  Verdict verdict = Verdict::kStable;
  bool undetermined = false;
  std::optional<Needs> needs;  // of what is undetermined
  // Of a leak, of growth that may end, or of a drift; nullopt: none was seen.
  std::optional<PatternKind> kind;
  GrowthRate rate;
  // A leak of this size would have been seen.
  std::optional<double> smallest_detectable_per_s;
  std::optional<double> smallest_detectable_per_step;
  Axis axis = Axis::kTime;
  bool knows_steps = false;
};

// A run in the few numbers that budgets and baselines are about: of the whole tree, on one metric.
struct RunMeasure {
  MeasuredGrowth growth;
  double peak_bytes = 0.0;     // the highest sample, teardown included
  double plateau_bytes = 0.0;  // the floor at the end, but for a last moment
  // Nothing grows any more: the plateau is one. Of a leak it is where it had come to.
  bool has_settled = false;
  std::uint32_t most_processes = 0;
};

// nullopt: nothing could be judged.
std::optional<RunMeasure> measure_run(const RunTracks& run,
                                      const std::optional<RunVerdict>& verdict);

}  // namespace tidemark::tracker
