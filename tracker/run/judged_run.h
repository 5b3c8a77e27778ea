// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/result.h"
#include "common/units.h"
#include "tracker/curve/judge.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::tracker {

// What the user knows better than the defaults, for a whole run.
struct JudgeOptions {
  Warmup warmup;
  std::optional<Rate> min_leak;
  std::optional<std::uint64_t> limit_bytes;  // nullopt: the one that the run knows
  std::optional<Metric> metric;              // nullopt: the best that is known
};

// The same for one series: its warm-up and least leak. What depends on the run is left unset.
Options series_options(const JudgeOptions& options);

// "10min", "200steps", "auto".
Result<Warmup> parse_warmup(std::string_view text);
// "footprint", "rss", "pss", "uss", "gpu".
Result<Metric> parse_metric(std::string_view text);
// "32GB"; more than nothing.
Result<std::uint64_t> parse_limit(std::string_view text);

// A run and the verdict on it.
struct JudgedRun {
  RunTracks run;
  std::optional<RunVerdict> verdict;  // nullopt: nothing could be judged
  std::optional<Metric> asked_metric;
};

// Takes time linear in the size of the curves.
JudgedRun judge_run(RunTracks run, const JudgeOptions& options);

// 1 for a leak, 4 when it is undetermined, else 0.
int exit_code_of(const JudgedRun& result);

}  // namespace tidemark::tracker
