// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/watch_options.h"
#include "common/result.h"
#include "common/site_records.h"
#include "tracker/curve/options.h"

namespace tidemark::cli {

struct ProfileOptions {
  std::string input;  // a run file with sites; empty: start a command
  WatchOptions watch;
  TraceMode mode = TraceMode::kSampled;
  std::uint64_t sample_every_bytes = 512U << 10U;
  bool follow_children = true;
  bool use_libunwind = false;
  std::size_t top = 10;
  bool plain = false;
  tracker::Warmup warmup;
  std::optional<Rate> min_leak;
};

// "sampled", "exact".
Result<TraceMode> parse_trace_mode(std::string_view text);
// At least 1 KiB: below that, exact is cheaper.
Result<std::uint64_t> parse_sample_every(std::string_view text);

// `tidemark profile`: which call stacks hold the growth. Around a command its status is passed on.
int run_profile(const ProfileOptions& options);

}  // namespace tidemark::cli
