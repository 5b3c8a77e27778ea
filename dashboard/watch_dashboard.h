// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/units.h"
#include "live/line_writer.h"
#include "live/watch_handler.h"
#include "tracker/run/judged_run.h"

namespace tidemark::dashboard {

struct DashboardSetup {
  bool can_mark = false;
  std::optional<double> replay_speed;
  std::string output_path;  // of the command's output; empty: there is no command
  std::string run_file;     // empty: none
  tracker::JudgeOptions judge;
  // Whether a profile that gave call stacks has ended since the last call; none: there is none.
  std::function<bool()> take_end_of_profile;
};

// Whether this build has a dashboard and there is a terminal for it.
bool dashboard_is_possible();

// `monitor` on a terminal. nullptr when the terminal cannot be had after all. What must be read
// after it is written to `lines` when it ends, which must outlive it.
std::unique_ptr<live::WatchView> make_dashboard_view(live::LineWriter& lines,
                                                     const DashboardSetup& setup);

}  // namespace tidemark::dashboard
