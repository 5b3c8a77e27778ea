// SPDX-License-Identifier: Apache-2.0
// In place of dashboard/ where FTXUI was not found.
#include "dashboard/dashboard.h"

namespace tidemark::dashboard {

bool dashboard_is_possible() { return false; }

std::unique_ptr<live::WatchView> make_dashboard_view(live::LineWriter& /*lines*/,
                                                     const DashboardOptions& /*options*/) {
  return nullptr;
}

}  // namespace tidemark::dashboard
