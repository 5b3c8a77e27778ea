// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/line_writer.h"
#include "cli/watch_user.h"
#include "common/units.h"
#include "tracker/curve/options.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::cli {

struct DashboardSetup {
  bool can_mark = false;
  std::optional<double> replay_speed;
  std::string output_path;  // of the command's output; empty: there is no command
  std::string run_file;     // empty: none
  tracker::Warmup warmup;
  std::optional<Rate> min_leak;
  std::optional<tracker::Metric> metric;
  // Whether a profile that gave call stacks has ended since the last call; none: there is none.
  std::function<bool()> take_end_of_profile;
};

// Whether this build has a dashboard and there is a terminal for it.
bool dashboard_is_possible();

// `monitor` on a terminal. nullptr when the terminal cannot be had after all. What must be read
// after it is written to `lines` when it ends, which must outlive it.
std::unique_ptr<WatchView> make_dashboard_view(LineWriter& lines, const DashboardSetup& setup);

}  // namespace tidemark::cli
