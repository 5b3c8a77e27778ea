// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"
#include "common/site_records.h"

namespace tidemark::collect {

// How the allocation tracer works in the processes that it is in.
struct TraceOptions {
  TraceMode mode = TraceMode::kSampled;
  std::uint64_t sample_every_bytes = 512U << 10U;
  bool follow_children = true;
  bool use_libunwind = false;

  bool operator==(const TraceOptions&) const = default;
};

// "sampled", "exact".
Result<TraceMode> parse_trace_mode(std::string_view text);
// At least 1 KiB: below that, exact is cheaper.
Result<std::uint64_t> parse_sample_every(std::string_view text);

}  // namespace tidemark::collect
