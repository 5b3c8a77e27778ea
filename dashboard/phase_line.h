// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "dashboard/dashboard_model.h"

namespace tidemark::dashboard {

struct PhaseLine {
  std::string line;    // exactly as many columns as asked for
  std::string legend;  // "░ eval  ▓ save": the names that are nowhere in the line in full
};

// Phases as shaded stretches below the plot: a shade for each name, and in every stretch its name,
// or as many letters as fit. Where there are more names than shades the letters tell. An inner
// phase lies over the outer one.
PhaseLine draw_phases(const TimelineModel& timeline, std::size_t width, bool utf8);

}  // namespace tidemark::dashboard
