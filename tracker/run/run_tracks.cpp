// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/run_tracks.h"

#include <string_view>

namespace tidemark::tracker {

std::string_view metric_name(Metric metric) {
  static constexpr std::array<std::string_view, kMetricCount> kNames{
      "footprint",     "rss",  "pss", "uss",        "rss_file",
      "rss_shmem",     "swap", "gpu", "gpu_device", "torch_allocated",
      "torch_reserved"};
  return kNames[static_cast<std::size_t>(metric)];
}

std::string_view track_kind_name(TrackKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"process", "role", "tree", "shm"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace tidemark::tracker
