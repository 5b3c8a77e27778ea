// SPDX-License-Identifier: Apache-2.0
#include "cli/track.h"

#include <unistd.h>

#include <array>
#include <string>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/messages.h"
#include "cli/read_notes.h"
#include "cli/track_json.h"
#include "cli/track_result.h"
#include "cli/track_text.h"
#include "cli/track_watch.h"
#include "common/clock.h"
#include "common/io.h"
#include "common/text.h"
#include "recording/open.h"
#include "tracker/run/track_builder.h"

namespace tidemark::cli {
namespace {

int track_recording(const TrackOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  tracker::TrackBuilder builder;
  const auto summary = (*reader)->read(builder);
  const TrackResult result = judge_tracks(builder.take(), options);
  if (!summary) {
    print_error(summary.error());
    if (!result.verdict) {
      return kExitTarget;
    }
    print_note("note: the verdict is on what came before the error");
  } else {
    print_read_notes(*summary);
  }
  const std::string text =
      options.watch.json ? track_json(result) + '\n' : track_text(result, glyphs_of_locale());
  if (const Status written = write_all(STDOUT_FILENO, text); !written) {
    print_error(written.error());
    return kExitTarget;
  }
  return summary ? exit_code_of(result) : kExitTarget;
}

}  // namespace

Result<tracker::Warmup> parse_warmup(std::string_view text) {
  tracker::Warmup warmup;
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

Result<tracker::Metric> parse_metric(std::string_view text) {
  using tracker::Metric;
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

int run_track(const TrackOptions& options) {
  return options.input.empty() ? watch_and_track(options) : track_recording(options);
}

}  // namespace tidemark::cli
