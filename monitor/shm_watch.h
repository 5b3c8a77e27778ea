// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "monitor/shm_pass.h"

namespace tidemark::monitor {

// What the last complete look at /dev/shm has found.
struct ShmReport {
  std::uint64_t segments = 0;  // named files, ours not counted
  std::uint64_t named_bytes = 0;
  // Of those that no process held in this pass and in the one before; unknown until two are done.
  std::optional<std::uint64_t> unheld_bytes;
  std::uint64_t unknown_bytes = 0;         // of those whose holders we may not see
  std::vector<ShmSegment> largest_unheld;  // at most 20, largest first
};

// Watches /dev/shm as a whole: leaked segments are in no process's memory. How much is used is
// asked at every tick; who holds the named segments costs a look at every process, so it is done in
// slices of at most a few milliseconds that add up to 1 % of the time. Segments that a process
// outside of our pid namespace holds look unheld. Not thread-safe.
class ShmWatch {
 public:
  struct Options {
    std::string directory = "/dev/shm";
    std::string proc_root = "/proc";
    uid_t own_uid = ::geteuid();
    double cost_share = 0.01;  // of wall time
    std::int64_t slice_ns = 2'000'000;
    std::int64_t pass_interval_ns = 10 * kNsPerSecond;  // from the end of one to the next
  };

  // `clock` must outlive this.
  ShmWatch(Options options, const Clock& clock);

  // Once per tick: spends what the budget allows and fills the dev_shm fields.
  void sample(SystemSample& sample);
  const std::optional<ShmReport>& report() const { return report_; }

 private:
  void advance();
  void finish_pass();

  Options options_;
  const Clock& clock_;
  std::int64_t next_slice_ns_ = 0;
  std::optional<ShmPass> pass_;
  std::optional<ShmReport> report_;
  std::optional<std::unordered_set<ino_t>> unheld_before_;  // by the pass before
};

// The /dev/shm that `pid` sees: a container has its own. Empty when we may not look.
std::string shm_directory_of(const std::string& proc_root, pid_t pid);

}  // namespace tidemark::monitor
