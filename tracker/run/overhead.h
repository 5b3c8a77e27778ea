// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tracker/run/judged_tracks.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::tracker {

// Roles of several helper processes that hold a constant amount, as much as it was when there were
// most of them.
std::vector<Overhead> find_overheads(const RunTracks& run, const JudgedTracks& judged);

}  // namespace tidemark::tracker
