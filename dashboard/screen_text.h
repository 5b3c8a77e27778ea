// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dashboard/dashboard_model.h"

namespace tidemark::dashboard {

// The whole screen, a string per line: with escape sequences for a terminal, or plain for a file.
// The terminal's lines each begin and end in the default style.
std::vector<std::string> screen_lines(const DashboardModel& model, int width, int height,
                                      const Theme& theme);
std::vector<std::string> screen_text(const DashboardModel& model, int width, int height,
                                     const Theme& theme);

}  // namespace tidemark::dashboard
