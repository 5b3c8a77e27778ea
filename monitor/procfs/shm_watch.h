// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "monitor/procfs/shm_pass.h"

namespace tidemark::monitor {

// Of the file system that `directory` is in.
std::optional<std::uint64_t> used_bytes_of(const std::string& directory);

// What the last complete pass over /dev/shm has found.
struct ShmReport {
  std::uint64_t segments = 0;  // named files, ours not counted
  std::uint64_t named_bytes = 0;
  // Of those that no process held in this pass and in the one before; unknown until two are done.
  std::optional<std::uint64_t> unheld_bytes;
  std::uint64_t unknown_bytes = 0;         // of those whose holders we may not see
  std::vector<ShmSegment> largest_unheld;  // at most 20, largest first
};

// Watches /dev/shm as a whole: leaked segments are in no process's memory. How much is used is
// asked at every tick; who holds the named segments costs a search of every process, so it is done
// in slices of at most a few milliseconds that add up to 1 % of the time, and soon again only where
// a change of what is used, or a segment newly without a holder, gives a reason to. Segments that a
// process outside of our pid namespace holds seem unheld. Not thread-safe.
class ShmWatch {
 public:
  struct Options {
    std::string directory = "/dev/shm";
    std::string proc_root = "/proc";
    uid_t own_uid = ::geteuid();
    double cost_share = 0.01;  // of one CPU
    std::int64_t slice_ns = 5'000'000;
    // What is charged: on a busy machine a little work takes long, and that costs nobody anything.
    std::function<std::int64_t()> spent_ns = thread_cpu_ns;
    // From the begin of one pass to that of the next: while nothing changes, and at least.
    std::int64_t pass_interval_ns = 10 * kNsPerSecond;
    std::int64_t least_interval_ns = kNsPerSecond / 2;
    std::function<std::optional<std::uint64_t>(const std::string&)> used_bytes = used_bytes_of;
  };

  // `clock` must outlive this.
  ShmWatch(Options options, const Clock& clock);

  // Once per tick: spends what the budget allows and fills the dev_shm fields. A segment that bears
  // the pid of a living process is that one's: without a holder it counts only if `is_of_job`.
  // Without `is_of_job` all count.
  void sample(SystemSample& sample, const std::function<bool(pid_t)>& is_of_job = {});
  const std::optional<ShmReport>& report() const { return report_; }

 private:
  bool is_due(std::int64_t now_ns) const;
  std::optional<std::uint64_t> unheld_bytes_now();
  void note_rest(std::uint64_t confirmed_bytes);
  void advance(const std::function<bool(pid_t)>& is_of_job);
  void finish_pass(const std::function<bool(pid_t)>& is_of_job);

  Options options_;
  const Clock& clock_;
  std::int64_t next_slice_ns_ = 0;  // as the budget has it
  std::int64_t pass_began_ns_ = 0;
  std::int64_t interval_ns_;  // after a change; longer and longer while passes find nothing new
  bool unconfirmed_ = false;  // the last pass found segments newly without a holder
  std::optional<std::uint64_t> used_bytes_;         // of /dev/shm, now
  std::optional<std::uint64_t> used_before_bytes_;  // when the last pass began
  std::optional<std::uint64_t> used_first_bytes_;   // when the one before began
  // When the pass before the last began: segments that nobody was seen to hold, and all the rest.
  std::uint64_t confirmed_bytes_ = 0;
  std::optional<std::int64_t> rest_bytes_;
  std::uint64_t hidden_bytes_ = 0;  // as the last pass saw it
  bool piles_up_ = false;           // all that was added between two passes is unheld
  // What was last counted ahead of the passes.
  struct Carried {
    std::uint64_t unheld_bytes;
    std::uint64_t used_bytes;
    int passes_since;
  };
  std::optional<Carried> carried_;
  std::optional<ShmPass> pass_;
  std::optional<ShmReport> report_;
  std::optional<std::unordered_set<ino_t>> unheld_before_;  // by the pass before
};

// False when a pid that a process there has written may mean another process to us.
bool shares_pid_namespace(const std::string& proc_root, pid_t pid);

// The /dev/shm that `pid` sees: a container has its own. Empty when we may not read it.
std::string shm_directory_of(const std::string& proc_root, pid_t pid);

}  // namespace tidemark::monitor
