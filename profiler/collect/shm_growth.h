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

// The segments that are named after these processes, or are the job's for another reason: other
// jobs of the machine have theirs. At most a hundred are named.
ShmGrowthReport made_by(const ShmGrowthReport& all, const std::unordered_set<pid_t>& pids);

// Which named segments in /dev/shm are new or have grown since the first sample. Not thread-safe.
class ShmGrowth {
 public:
  explicit ShmGrowth(std::string directory = "/dev/shm") : directory_(std::move(directory)) {}

  // Costs some milliseconds: it asks every process what it holds. What one of these processes
  // holds, or has held in an earlier sample, is the job's, and so are `segments`, by inode. True:
  // there is more of the job's than there ever was.
  bool sample(const std::unordered_set<pid_t>& pids,
              const std::unordered_set<ino_t>& segments = {});
  // All segments, as it was when those were most: a job that ends well may have tidied up.
  const ShmGrowthReport& report() const { return most_; }

 private:
  std::string directory_;
  bool has_sampled_ = false;
  std::unordered_map<ino_t, std::uint64_t> at_first_;  // bytes
  std::unordered_set<ino_t> of_job_;
  ShmGrowthReport most_;
  std::uint64_t told_bytes_ = 0;
};

}  // namespace tidemark::collect
