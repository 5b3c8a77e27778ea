// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/trace_options.h"

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"

namespace tidemark::collect {

Result<TraceMode> parse_trace_mode(std::string_view text) {
  const auto mode = trace_mode_from_name(text);
  if (!mode || *mode == TraceMode::kDormant) {
    return Error{Errc::kUsage,
                 fmt::format("--mode is sampled or exact, not '{}'", escape_text(text))};
  }
  return *mode;
}

Result<std::uint64_t> parse_sample_every(std::string_view text) {
  constexpr std::uint64_t kLeast = 1024;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  auto bytes = parse_size_bytes(text);
  if (bytes && (*bytes < kLeast || *bytes > kMost)) {
    return Error{Errc::kUsage,
                 "--sample-every is at least 1KiB, for example 512KiB; --mode exact records all"};
  }
  return bytes;
}

}  // namespace tidemark::collect
