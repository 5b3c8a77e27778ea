// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tracker/options.h"
#include "tracker/reading.h"
#include "tracker/site_tracks.h"

namespace tidemark::tracker {

// A call stack and what it holds, over all processes of one role that have it.
struct RankedSite {
  AllocationKind kind = AllocationKind::kHeap;
  Role role = Role::kOther;
  std::vector<ProcessKey> processes;  // the one with the most live bytes first
  std::vector<std::uint32_t> frames;  // innermost first
  bool is_truncated = false;

  Verdict verdict = Verdict::kStable;  // the strongest of its processes
  bool undetermined = false;
  std::optional<Needs> needs;
  // What it grows by: 0 unless the verdict is growing or leak. Reserved memory that is not resident
  // does not count.
  double growth_bytes_per_s = 0.0;
  std::optional<double> growth_bytes_per_step;
  double growth_bytes = 0.0;  // since `since`
  Moment since;
  std::optional<double> share_of_growth;  // of what its processes grew by since then

  std::uint64_t live_bytes = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t alloc_bytes = 0;
  std::uint64_t alloc_blocks = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t temporary_blocks = 0;
  std::optional<std::uint64_t> resident_bytes;
  std::vector<SiteBirths::Birth> births;  // of the process with the most live bytes

  bool grows() const { return verdict >= Verdict::kGrowing; }
};

// What a traced process grew by, and how much of it the sites explain.
struct ProcessGrowth {
  std::size_t process = 0;  // into RunSites::processes
  double from_s = 0.0;      // since its fastest site grows, else since its first look
  double to_s = 0.0;
  std::optional<double> footprint_bytes;  // changes in this time
  std::optional<double> shared_bytes;     // part of it
  std::optional<double> file_bytes;       // beside it
  double sites_bytes = 0.0;
  std::optional<double> explained_share;  // of the footprint at the end, by live bytes of sites
};

struct SiteRanking {
  std::vector<RankedSite> sites;  // those that grow first, the fastest first; then the largest
  std::vector<ProcessGrowth> processes;  // the one that grew most first
};

// Which call stacks grow, and how fast. Judges at most `most_judged` sites: those that grew most
// and those that are largest.
SiteRanking rank_sites(const RunSites& run, const Options& options, std::size_t most_judged = 200);

}  // namespace tidemark::tracker
