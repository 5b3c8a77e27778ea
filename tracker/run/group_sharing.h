// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tracker/curve/curve_window.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

bool is_member(const Track& process, const Track& group);

// The window from when all processes that start at its beginning are there: a start adds all that
// the process sees, and is no growth.
Window after_first_starts(const RunTracks& run, const Track& group, Window window);

// Where the growth of a role or tree must end when it is nothing but pages that were shared and
// become private by being written to: the sum of what its processes see. nullopt when it is
// something else, or when that end was passed.
std::optional<double> unsharing_bound(const RunTracks& run, const Track& group,
                                      const JudgedCurve& curve, const Window& judged);

// True when a process grew by touching a segment that others had filled: its shared memory rose,
// and the tree, which counts the segment once, did not.
bool grew_by_touching_shared(const Track& process, const Series& tree, const Window& window);

}  // namespace tidemark::tracker
