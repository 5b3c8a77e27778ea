// SPDX-License-Identifier: Apache-2.0
// In place of monitor_dashboard.cpp where FTXUI was not found.
#include "cli/monitor_dashboard.h"

namespace tidemark::cli {

bool dashboard_is_possible() { return false; }

std::unique_ptr<WatchView> make_dashboard_view(LineWriter& /*lines*/,
                                               const DashboardSetup& /*setup*/) {
  return nullptr;
}

}  // namespace tidemark::cli
