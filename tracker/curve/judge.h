// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/units.h"
#include "tracker/curve/series.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::tracker {

// How long growth is to be expected. Counted from the start of a process, or from the first step
// where steps are known.
struct Warmup {
  // Both unset: automatic, see docs/verdicts.md.
  std::optional<double> seconds;
  std::optional<double> steps;

  bool automatic() const { return !seconds && !steps; }
};

struct Options {
  Warmup warmup;
  // Growth below it is drift, not a leak. Default: 0.5 % of the floor per hour, or per 1,000 steps
  // where only steps are known.
  std::optional<Rate> min_leak;
  std::optional<double> limit_bytes;  // for the forecast
  std::optional<double> epoch_steps;  // length of one marked epoch, for the automatic allowance
  std::optional<double> epoch_seconds;
  // How old the process was at the first sample: that much of the allowance is over. nullopt:
  // unknown, and nothing is.
  std::optional<double> age_at_start_s;
  // How many steps the job had done by then, by its own numbers: as many of them are over as fit
  // into the age of the process. A job that resumes numbers its steps on.
  std::optional<double> steps_at_start;
};

// Warm-up, spikes or leak? Pure: the same series and options give the same verdict, on any machine
// and at any time of day. Takes time linear in the cells of the series.
SeriesVerdict judge(const Series& series, const Options& options);

}  // namespace tidemark::tracker
