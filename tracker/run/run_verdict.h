// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tracker/causes/advice.h"
#include "tracker/curve/judge.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// By how much the GPU memory of the run grew, by the driver's account and by that of torch's
// caching allocator: what the second does not explain was allocated beside it.
struct GpuGrowth {
  bool counts_all_users = false;  // the driver does not tell processes apart here
  Moment since;
  double driver_bytes = 0.0;
  double torch_reserved_bytes = 0.0;
  std::optional<double>
      torch_allocated_bytes;  // in tensors; the rest of it is the allocator's cache

  // Of the driver's; nullopt where that did not grow.
  std::optional<double> explained_share() const {
    return driver_bytes > 0.0 ? std::optional(torch_reserved_bytes / driver_bytes) : std::nullopt;
  }
};

// One judged curve of the run.
struct TrackVerdict {
  std::size_t track = 0;  // index into RunTracks::tracks
  Metric metric = Metric::kFootprint;
  SeriesVerdict series;
  // Processes started or exited, and that was not counted as growth or as spikes.
  bool churn_removed = false;
  // Its growth was shared pages that became private, bounded by what its processes see.
  bool copy_on_write = false;
};

// What the growth consists of.
enum class HeldAs {
  kPrivate,
  kCopyOnWrite,
  kSharedMemory,   // counted once
  kSharedSegment,  // resident sizes rise in several processes, the memory exists once
  kSwap,
  kFileCache,
  kUnheldShm,
  kProcesses,  // ever more of them
};

// Memory that is there and does not grow: many idle workers that share most of it.
struct Overhead {
  Role role = Role::kOther;
  std::uint32_t processes = 0;
  double rss_bytes = 0.0;
  std::optional<double> footprint_bytes;  // shared pages once
  std::optional<double> pss_bytes;
};

// The answer for a run: that of its most telling curve, and what the others say.
struct RunVerdict {
  Verdict verdict = Verdict::kStable;
  std::size_t where = 0;  // index into `tracks`: whose curve gave the answer
  // Who carries the growth of `where` when that is a role or a tree; index into `tracks`.
  std::optional<std::size_t> carrier;
  double carrier_share = 0.0;     // of the growth
  std::optional<HeldAs> held_as;  // nullopt: nothing grows
  std::vector<TrackVerdict> tracks;
  std::vector<Overhead> overheads;
  std::optional<GpuGrowth> gpu_growth;  // nullopt: torch's side of it is unknown
  std::vector<Advice> advice;

  const TrackVerdict& answer() const { return tracks[where]; }
};

// nullopt when no track has a sample of any metric that can be judged. `metric`: the one to judge
// on; nullopt: footprint where its parts are known, else rss for one process and pss (then rss) for
// roles and trees.
std::optional<RunVerdict> judge_run(const RunTracks& run, const Options& options,
                                    std::optional<Metric> metric);

// "private", "copy_on_write", ...: they are in JSON and never change.
std::string_view held_as_name(HeldAs held_as);

}  // namespace tidemark::tracker
