// SPDX-License-Identifier: Apache-2.0
#include "cli/profile.h"

#include <unistd.h>

#include <string>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/messages.h"
#include "cli/profile_json.h"
#include "cli/profile_report.h"
#include "cli/profile_text.h"
#include "cli/profile_watch.h"
#include "cli/read_notes.h"
#include "common/io.h"
#include "common/text.h"
#include "common/units.h"
#include "recording/open.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::cli {
namespace {

int profile_recording(const ProfileOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  tracker::SiteTrackBuilder builder;
  const auto summary = (*reader)->read(builder);
  if (!summary) {
    print_error(summary.error());
  } else {
    print_read_notes(*summary);
  }
  if (builder.sites().empty()) {
    print_error(fmt::format("{} has no allocation sites", escape_text(options.input)),
                "tidemark profile -o FILE -- COMMAND records them; tidemark track FILE judges it");
    return kExitTarget;
  }
  tracker::Options judging;
  judging.warmup = options.warmup;
  judging.min_leak = options.min_leak;
  ProfileReport report = make_report(builder.sites(), judging, options.top);
  report.command = (*reader)->info().command;
  const std::string text = options.watch.json
                               ? profile_json(report) + '\n'
                               : profile_text(report, style_for(STDOUT_FILENO, options.plain));
  if (const Status written = write_all(STDOUT_FILENO, text); !written) {
    print_error(written.error());
    return kExitTarget;
  }
  return summary ? kExitOk : kExitTarget;
}

}  // namespace

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

int run_profile(const ProfileOptions& options) {
  return options.input.empty() ? watch_and_profile(options) : profile_recording(options);
}

}  // namespace tidemark::cli
