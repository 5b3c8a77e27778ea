// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "common/records.h"
#include "tracker/curve/curve_window.h"
#include "tracker/curve/series.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// Processes of one role that started or exited at about the same time.
struct ProcessCountChange {
  double t_s = 0.0;
  double settled_s = 0.0;  // when those that started had most of their first memory
  int before = 0;
  int after = 0;
};

// How many processes there were of each role, and when that changed. Those that are there at the
// beginning are no change.
struct ProcessCounts {
  std::array<std::vector<ProcessCountChange>, kRoleCount> by_role;

  const std::vector<ProcessCountChange>& of(Role role) const {
    return by_role[static_cast<std::size_t>(role)];
  }
};

ProcessCounts count_processes(const RunTracks& run);

// True when processes are added again and again, until the end, and none or few of them go.
bool keeps_growing(const std::vector<ProcessCountChange>& changes, const Window& window);

// When a process that started has nearly all of what it has a minute later.
double settled_after_start(const Track& process);

// The curve of a role or tree as if the processes that are there at its end had always been there:
// what the curve moved by when a process started is taken out for as long as that process runs.
// So growth inside the processes stays, and a pool that exits and starts again leaves a straight
// line. nullopt: no process started or exited, or so many did that too little is left.
std::optional<Series> without_process_churn(const RunTracks& run, const Track& group,
                                            const Series& curve);

}  // namespace tidemark::tracker
