// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/site_records.h"

namespace tidemark::collect {

// Without the segments that were made by processes other than these. At most a hundred are named.
ShmGrowthReport made_by(const ShmGrowthReport& all, const std::unordered_set<pid_t>& pids);

// Which named segments in /dev/shm are new or have grown since the first sample. Not thread-safe.
class ShmGrowth {
 public:
  explicit ShmGrowth(std::string directory = "/dev/shm") : directory_(std::move(directory)) {}

  // Costs some milliseconds: it asks every process what it holds. True: there is more than
  // there ever was of what these processes, or nobody knows who, made.
  bool sample(const std::unordered_set<pid_t>& pids);
  // All segments, as it was when those were most: a job that ends well may have tidied up.
  const ShmGrowthReport& report() const { return most_; }

 private:
  std::string directory_;
  bool has_sampled_ = false;
  std::unordered_map<ino_t, std::uint64_t> at_first_;  // bytes
  ShmGrowthReport most_;
  std::uint64_t told_bytes_ = 0;
};

}  // namespace tidemark::collect
