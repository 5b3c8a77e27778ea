// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/site_records.h"

namespace tidemark::collect {

// Process ids. However many there are: half a megabyte holds them all.
class PidSet {
 public:
  PidSet() = default;
  PidSet(std::initializer_list<pid_t> pids) {
    for (const pid_t pid : pids) {
      insert(pid);
    }
  }
  void insert(pid_t pid) {
    constexpr std::size_t kMost = std::size_t{1} << 22U;  // the kernel has no larger ones
    const auto place = static_cast<std::size_t>(pid);
    if (pid > 0 && place <= kMost) {
      is_in_.resize(std::max(is_in_.size(), place + 1));
      is_in_[place] = true;
    }
  }
  bool contains(pid_t pid) const {
    const auto place = static_cast<std::size_t>(pid);
    return pid > 0 && place < is_in_.size() && is_in_[place];
  }
  std::vector<pid_t> all() const {
    std::vector<pid_t> pids;
    for (std::size_t place = 0; place < is_in_.size(); ++place) {
      if (is_in_[place]) {
        pids.push_back(static_cast<pid_t>(place));
      }
    }
    return pids;
  }

 private:
  std::vector<bool> is_in_;  // by pid
};

// The segments that are named after these processes, or are the job's for another reason: other
// jobs of the machine have theirs. At most a hundred are named.
ShmGrowthReport made_by(const ShmGrowthReport& all, const PidSet& pids);

// Which named segments in /dev/shm are new or have grown since the first sample. Not thread-safe.
class ShmGrowth {
 public:
  explicit ShmGrowth(std::string directory = "/dev/shm") : directory_(std::move(directory)) {}

  // Costs some milliseconds: it asks every process what it holds. What one of these processes
  // holds, or has held in an earlier sample, is the job's, and so are `segments`, by inode. True:
  // there is more of the job's than there ever was.
  bool sample(const PidSet& pids, const std::unordered_set<ino_t>& segments = {});
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
