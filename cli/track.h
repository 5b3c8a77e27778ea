// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/watch_options.h"
#include "common/result.h"
#include "tracker/curve/options.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::cli {

struct TrackOptions {
  std::string input;   // any recording that we read, "-": the standard input; empty: watch a target
  WatchOptions watch;  // of a recording only `json` counts
  tracker::Warmup warmup;
  std::optional<Rate> min_leak;
  std::optional<std::uint64_t> limit_bytes;  // nullopt: the one that the run knows
  std::optional<tracker::Metric> metric;     // nullopt: the best that is known
};

// "10min", "200steps", "auto".
Result<tracker::Warmup> parse_warmup(std::string_view text);
// "footprint", "rss", "pss", "uss", "gpu".
Result<tracker::Metric> parse_metric(std::string_view text);

// "32GB"; more than nothing.
Result<std::uint64_t> parse_limit(std::string_view text);

// `tidemark track`: warm-up, spikes or leak? The exit code is the answer.
int run_track(const TrackOptions& options);

}  // namespace tidemark::cli
