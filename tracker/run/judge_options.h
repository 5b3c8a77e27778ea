// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/result.h"
#include "common/units.h"
#include "tracker/curve/options.h"
#include "tracker/run/run_tracks.h"

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

}  // namespace tidemark::tracker
