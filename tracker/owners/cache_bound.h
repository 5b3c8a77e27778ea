// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tracker/owners/owner_ranking.h"

namespace tidemark::tracker {

// Where a container by key, which grows, stops if it has one entry for each sample: that tells a
// warm-up from a leak.
struct CacheBound {
  // What holds the samples and does not grow; nullptr: an epoch is marked, and ends.
  const RankedOwner* data_set = nullptr;
  std::uint64_t samples = 0;  // that the data set has, or an epoch has steps
  bool is_exceeded = false;   // it has more entries already: it is no cache by sample
  std::optional<double> in_s;
};

// nullopt: `owner` is no container by key that grows, or nothing is known of the data set.
// What it points to is in `ranking`.
std::optional<CacheBound> cache_bound(const RankedOwner& owner, const OwnerRanking& ranking,
                                      const RunOwners& run);

}  // namespace tidemark::tracker
