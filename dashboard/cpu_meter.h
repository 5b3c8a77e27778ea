// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/process_key.h"

namespace tidemark::dashboard {

using CpuShares = std::unordered_map<ProcessKey, double>;

// How much of a core processes use, between two samples of /proc/PID/stat. A sample costs about ten
// microseconds a process, so it is for those on the screen. Not thread-safe.
class CpuMeter {
 public:
  explicit CpuMeter(std::string proc = "/proc") : proc_(std::move(proc)) {}
  // Reads these; others are forgotten.
  void sample(const std::vector<ProcessKey>& keys, double now_s);
  // 1.0 is a whole core. Of processes that were sampled twice.
  const CpuShares& shares() const { return shares_; }

 private:
  struct Seen {
    double at_s = 0.0;
    std::uint64_t cpu_ticks = 0;
  };

  std::string proc_;
  std::unordered_map<ProcessKey, Seen> seen_;
  CpuShares shares_;
};

}  // namespace tidemark::dashboard
