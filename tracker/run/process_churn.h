// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "common/role.h"
#include "tracker/curve/curve_window.h"
#include "tracker/curve/series.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// Processes of one role that were born or died at about the same time.
struct HeadChange {
  double t_s = 0.0;
  double settled_s = 0.0;  // when those that were born had most of the memory that they start with
  int before = 0;
  int after = 0;
};

// How many processes there were of each role, and when that changed; those of the first moment are
// no change.
struct HeadCounts {
  std::array<std::vector<HeadChange>, kRoleCount> by_role;

  const std::vector<HeadChange>& of(Role role) const {
    return by_role[static_cast<std::size_t>(role)];
  }
};

HeadCounts count_heads(const RunTracks& run);

// True when processes are added again and again, until the end, and none or few of them go.
bool keeps_growing(const std::vector<HeadChange>& changes, const Window& window);

// When a newborn process has nearly all of what it has a minute later.
double settled_after_birth(const Track& process);

// The curve of a role or tree as if the processes that are there at its end had always been there:
// what the curve moved by when a process was born is taken out for as long as that process lives.
// So growth inside the processes stays, and a pool that quits and returns leaves a straight line.
// nullopt: nobody came or went, or they did so all the time and too little is left.
std::optional<Series> without_births(const RunTracks& run, const Track& group, const Series& curve);

}  // namespace tidemark::tracker
