// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "tracker/run/judged_tracks.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// Whose growth, or whose spikes, a role or tree shows.
struct Carrier {
  std::size_t judged = 0;  // index into JudgedTracks::tracks
  double share = 0.0;      // of the growth, or of the height of the spikes; at most 1
};

// A process where one has most of it, else a role; nullopt when nobody has a third of it, or
// nothing grew.
std::optional<Carrier> find_carrier(const RunTracks& run, const JudgedTracks& judged,
                                    std::size_t where);

}  // namespace tidemark::tracker
