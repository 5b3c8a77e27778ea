// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/judge_options.h"

#include <string_view>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/text.h"

namespace tidemark::tracker {

Result<Warmup> parse_warmup(std::string_view text) {
  Warmup warmup;
  if (text == "auto") {
    return warmup;
  }
  for (const std::string_view unit : {"steps", "step"}) {
    if (text.ends_with(unit)) {
      const auto steps =
          parse_number<std::uint64_t>(trim(text.substr(0, text.size() - unit.size())));
      if (!steps) {
        break;
      }
      warmup.steps = static_cast<double>(*steps);
      return warmup;
    }
  }
  const auto ns = parse_duration_ns(text);
  if (!ns) {
    return Error{Errc::kUsage, fmt::format("--warmup is a time, a number of steps or auto (10min, "
                                           "200steps, auto), not '{}'",
                                           escape_text(text))};
  }
  warmup.seconds = to_seconds(*ns);
  return warmup;
}

Result<Metric> parse_metric(std::string_view text) {
  for (const Metric metric :
       {Metric::kFootprint, Metric::kRss, Metric::kPss, Metric::kUss, Metric::kGpu}) {
    if (text == metric_name(metric)) {
      return metric;
    }
  }
  return Error{Errc::kUsage, fmt::format("--metric is footprint, rss, pss, uss or gpu, not '{}'",
                                         escape_text(text))};
}

Result<std::uint64_t> parse_limit(std::string_view text) {
  auto bytes = parse_size_bytes(text);
  if (bytes && *bytes == 0) {
    return Error{Errc::kUsage, "--limit is an amount of memory, for example 32GB"};
  }
  return bytes;
}

}  // namespace tidemark::tracker
