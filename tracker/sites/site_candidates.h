// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tracker/sites/site_tracks.h"

namespace tidemark::tracker {

// The sites of one process that have the same frames and hold the same kind of memory. What it
// points to outlives it.
struct CandidateStack {
  const TracedProcess* process = nullptr;
  std::vector<const SiteTrack*> tracks;  // at least one
  double first_bytes = 0.0;              // when it was first seen
  double held_bytes = 0.0;               // see held_late

  double grown_bytes() const { return held_bytes - first_bytes; }
};

// The stacks that grew most and those that are largest, of all processes; at most `most`.
std::vector<CandidateStack> candidate_stacks(const RunSites& run, std::size_t most);

// What a site held in the second half of its time: a process that ends gives all back.
double held_late(const SiteTrack& track);

}  // namespace tidemark::tracker
