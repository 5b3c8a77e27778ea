// SPDX-License-Identifier: Apache-2.0
// In place of dashboard/ where FTXUI was not found.
#include "dashboard/watch_dashboard.h"

namespace tidemark::dashboard {

bool dashboard_is_possible() { return false; }

std::unique_ptr<live::WatchView> make_dashboard_view(live::LineWriter& /*lines*/,
                                                     const DashboardSetup& /*setup*/) {
  return nullptr;
}

}  // namespace tidemark::dashboard
