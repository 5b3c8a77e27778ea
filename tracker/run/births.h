// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tracker/curve/series.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// When a newborn process has nearly all of what it has a minute later.
double settled_after_birth(const Track& process);

// The curve of a role or tree as if the processes that are there at its end had always been there:
// what the curve moved by when a process was born is taken out for as long as that process lives.
// So growth inside the processes stays, and a pool that quits and returns leaves a straight line.
// nullopt: nobody came or went, or they did so all the time and too little is left.
std::optional<Series> without_births(const RunTracks& run, const Track& group, const Series& curve);

}  // namespace tidemark::tracker
