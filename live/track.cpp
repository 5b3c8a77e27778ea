// SPDX-License-Identifier: Apache-2.0
#include "live/track.h"

#include <unistd.h>

#include <array>
#include <string>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/text.h"
#include "live/track_watch.h"
#include "recording/open.h"
#include "report/output.h"
#include "report/track_text.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"

namespace tidemark::live {
namespace {

int track_recording(const TrackOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  tracker::TrackBuilder builder;
  const auto summary = (*reader)->read(builder);
  const tracker::JudgedRun result = tracker::judge_run(builder.take(), options.judge);
  if (!summary) {
    print_error(summary.error());
    if (!result.verdict) {
      return kExitTarget;
    }
    print_note("note: the verdict is on what came before the error");
  } else {
    report::print_read_notes(*summary);
  }
  const std::string text = options.watch.json
                               ? report::track_json(result) + '\n'
                               : report::track_text(result, report::glyphs_of_locale());
  if (const Status written = write_all(STDOUT_FILENO, text); !written) {
    print_error(written.error());
    return kExitTarget;
  }
  return summary ? tracker::exit_code_of(result) : kExitTarget;
}

}  // namespace

int run_track(const TrackOptions& options) {
  return options.input.empty() ? watch_and_track(options) : track_recording(options);
}

}  // namespace tidemark::live
