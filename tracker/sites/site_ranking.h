// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracker/curve/judge.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::tracker {

// What one or more call stacks hold, over all processes of one role that have them. It has no site
// number.
struct HeldMemory : SiteSample {
  AllocationKind kind = AllocationKind::kHeap;  // of the largest
  Role role = Role::kOther;
  std::vector<ProcessKey> processes;  // the one with the most live bytes first

  Verdict verdict = Verdict::kStable;  // the strongest of its processes
  bool undetermined = false;
  std::optional<Needs> needs;
  bool warmup_ignored = false;  // these two: see SeriesVerdict
  bool min_leak_ignored = false;
  // What it grows by: 0 unless the verdict is growing or leak. Reserved memory that is not resident
  // does not count.
  double growth_bytes_per_s = 0.0;
  std::optional<double> growth_bytes_per_step;
  double growth_bytes = 0.0;  // since `since`
  Moment since;
  // In each of its processes by one allocation, or nearly all of it in the last moments: nobody has
  // seen it go on.
  bool came_at_once = false;
  // Of what its processes grew by since then. nullopt also when that was for too short a time, or
  // too little, to be compared.
  std::optional<double> share_of_growth;

  std::vector<SiteAges::Interval> ages;  // of the process with the most live bytes

  bool grows() const { return verdict >= Verdict::kGrowing && growth_bytes_per_s > 0.0; }
};

// A call stack.
struct RankedSite : HeldMemory {
  std::vector<std::uint32_t> frames;  // innermost first
  bool is_truncated = false;
};

// A line of code, a function or a native function, and all call stacks that allocate through it.
struct RankedLine : HeldMemory {
  std::vector<std::size_t> sites;  // into SiteRanking::sites, in their order; at least one
  std::string name;                // as own_lines() and its kin have it; empty: the stack has none
};

// What call stacks are put together by.
enum class Grouping { kLine, kFunction, kNative };

// The memory of a process by what it is, in bytes; nullopt: not known. `footprint` is about the sum
// of the first four: they are not looked at in the same moment, and sites may be estimates.
struct MemoryParts {
  std::optional<double> sites;  // live bytes; at the end those that are resident
  std::optional<double> slack;  // these two: see MemoryAccount
  std::optional<double> unhooked;
  std::optional<double> shared;
  std::optional<double> footprint;
  std::optional<double> file;  // beside it
};

// What a traced process grew by, and where that is.
struct ProcessGrowth {
  std::size_t process = 0;  // into RunSites::processes
  // Since its fastest site grows, if that is by enough to be compared; else since its first look.
  double from_s = 0.0;
  double to_s = 0.0;
  MemoryParts growth;                     // changes in this time
  MemoryParts now;                        // at the end
  std::optional<double> account_age_s;    // of slack and unhooked in `now`
  std::optional<double> explained_share;  // of the footprint at the end, by what sites hold
};

struct SiteRanking {
  std::vector<RankedSite> sites;      // those that grow first, the fastest first; then the largest
  std::vector<RankedLine> lines;      // likewise
  std::vector<RankedLine> functions;  // likewise; see own_function()
  std::vector<RankedLine> natives;    // likewise; see native_line()
  std::vector<ProcessGrowth> processes;  // the one that grew most first

  const std::vector<RankedLine>& by(Grouping grouping) const {
    return grouping == Grouping::kLine       ? lines
           : grouping == Grouping::kFunction ? functions
                                             : natives;
  }
};

// Which call stacks and lines grow, and how fast. What came at once comes behind what grew for a
// while. Judges at most `most_judged` stacks: those that grew most and
// those that are largest, each process for itself.
//
// Stacks whose own_lines() begin with the same one are one line, where they are of one role and one
// sort of memory. A stack that has none is a line by itself.
//
// Where a function that only passes memory on is the innermost line of what grows and of what does
// not, the line is the first one further out that only those have which grow.
SiteRanking rank_sites(const RunSites& run, const Options& options, std::size_t most_judged = 200);
// The same without functions and natives, which take as long again.
SiteRanking rank_lines(const RunSites& run, const Options& options, std::size_t most_judged = 200);

}  // namespace tidemark::tracker
