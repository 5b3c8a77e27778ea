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

// "10min", "200steps", "auto".
Result<Warmup> parse_warmup(std::string_view text);
// "footprint", "rss", "pss", "uss", "gpu".
Result<Metric> parse_metric(std::string_view text);
// "32GB"; more than nothing.
Result<std::uint64_t> parse_limit(std::string_view text);

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
