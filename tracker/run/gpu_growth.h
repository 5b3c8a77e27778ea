// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tracker/curve/reading.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

struct JudgedTracks;

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

// nullopt: one of the two accounts is missing.
std::optional<GpuGrowth> find_gpu_growth(const RunTracks& run, const JudgedTracks& judged);

}  // namespace tidemark::tracker
