// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/judged_run.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/exit_code.h"
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
  if (const auto number = parse_number<double>(trim(text)); number && *number > 0.0) {
    return Error{Errc::kUsage, fmt::format("--warmup: '{0}' has no unit: say {0}steps, {0}s or "
                                           "{0}min",
                                           escape_text(trim(text)))};
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

Options series_options(const JudgeOptions& options) {
  Options series;
  series.warmup = options.warmup;
  series.min_leak = options.min_leak;
  return series;
}

JudgedRun judge_run(RunTracks run, const JudgeOptions& options) {
  Options judging = series_options(options);
  if (options.limit_bytes) {
    run.limit_bytes = static_cast<double>(*options.limit_bytes);
    run.limit_source = "--limit";
  }
  if (options.metric == Metric::kGpu && !options.limit_bytes) {
    run.limit_bytes = run.gpu_limit_bytes;  // not that of the machine's memory
    run.limit_source = run.gpu_limit_source;
  }
  judging.limit_bytes = run.limit_bytes;
  JudgedRun result{std::move(run), {}, options.metric};
  result.verdict = judge_run(result.run, judging, options.metric);
  return result;
}

int exit_code_of(const JudgedRun& result) {
  if (!result.verdict) {
    return kExitUndetermined;
  }
  switch (result.verdict->verdict) {
    case Verdict::kLeak:
      return kExitLeak;
    case Verdict::kGrowing:
      return kExitUndetermined;
    case Verdict::kStable:
    case Verdict::kWarmup:
    case Verdict::kSpikes:
      break;
  }
  return result.verdict->answer().series.undetermined ? kExitUndetermined : kExitOk;
}

}  // namespace tidemark::tracker
