// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/process_key.h"

// What the screen reads beside the samples of the run.
namespace tidemark::dashboard {

// The last lines of what a program has written, fit for a screen: progress bars as they stand,
// colours and cursor movements taken out, the rest escaped.
std::vector<std::string> last_lines(std::string_view bytes, std::size_t most);

// Looks at the end of a file that grows.
class OutputTail {
 public:
  explicit OutputTail(std::string path) : path_(std::move(path)) {}
  // True when there is something new.
  bool refresh();
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  static constexpr std::size_t kMostLines = 8;

  std::string path_;
  std::int64_t size_ = -1;
  std::vector<std::string> lines_;
};

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
