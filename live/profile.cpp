// SPDX-License-Identifier: Apache-2.0
#include "live/profile.h"

#include <unistd.h>

#include <string>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/units.h"
#include "live/profile_watch.h"
#include "recording/open.h"
#include "report/output.h"
#include "report/profile_report.h"
#include "report/profile_text.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::live {
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
    report::print_read_notes(*summary);
  }
  if (builder.sites().empty()) {
    print_error(fmt::format("{} has no allocation sites", escape_text(options.input)),
                "tidemark profile -o FILE -- COMMAND records them; tidemark track FILE judges it");
    return kExitTarget;
  }
  report::ProfileReport report = report::make_report(builder.sites(), options.judge, options.top);
  report.command = (*reader)->info().command;
  const std::string text =
      options.watch.json
          ? report::profile_json(report) + '\n'
          : report::profile_text(report, report::style_for(STDOUT_FILENO, options.plain));
  if (const Status written = write_all(STDOUT_FILENO, text); !written) {
    print_error(written.error());
    return kExitTarget;
  }
  return summary ? kExitOk : kExitTarget;
}

}  // namespace

int run_profile(const ProfileOptions& options) {
  return options.input.empty() ? watch_and_profile(options) : profile_recording(options);
}

}  // namespace tidemark::live
