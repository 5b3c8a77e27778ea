// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tidemark::cli {

struct GrowingSegment {
  std::string path;  // below /dev/shm, raw bytes
  std::uint64_t bytes = 0;
  std::uint64_t grown_bytes = 0;
  std::optional<bool> held;    // by some process
  std::optional<pid_t> maker;  // where its name tells
};

struct ShmGrowthReport {
  std::uint64_t grown_bytes = 0;  // of all segments that are new or grew
  std::uint64_t segments = 0;     // how many those are
  std::vector<GrowingSegment> largest;
};

// Without the segments that were made by processes other than these. At most ten are named.
ShmGrowthReport made_by(const ShmGrowthReport& all, const std::unordered_set<pid_t>& pids);

// Which named segments in /dev/shm are new or have grown since the first look. Not thread-safe.
class ShmGrowth {
 public:
  explicit ShmGrowth(std::string directory = "/dev/shm") : directory_(std::move(directory)) {}

  // A look costs some milliseconds: it asks every process what it holds.
  void look();
  // All segments, as it was when they were most: a job that ends well may have tidied up.
  const ShmGrowthReport& report() const { return most_; }

 private:
  std::string directory_;
  bool has_looked_ = false;
  std::unordered_map<ino_t, std::uint64_t> at_first_;  // bytes
  ShmGrowthReport most_;
};

}  // namespace tidemark::cli
