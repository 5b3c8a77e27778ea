// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/clock.h"
#include "common/process_key.h"
#include "common/records.h"
#include "monitor/procfs/shm_makers.h"
#include "monitor/procfs/shm_pass.h"

namespace tidemark::monitor {

// Of the file system that `directory` is in.
std::optional<std::uint64_t> used_bytes_of(const std::string& directory);

// What the last complete pass over /dev/shm has found.
struct ShmReport {
  std::uint64_t segments = 0;  // named files, ours not counted
  std::uint64_t named_bytes = 0;
  // Of the job's that no process held in this pass and in the one before; unknown until two are
  // done.
  std::optional<std::uint64_t> unheld_bytes;
  std::uint64_t others_unheld_bytes = 0;   // likewise, of those that are not known to be the job's
  std::uint64_t unknown_bytes = 0;         // of those whose holders we may not see
  std::uint64_t job_unknown_bytes = 0;     // likewise, of the job's
  std::vector<ShmSegment> largest_unheld;  // of the job, at most 20, largest first
};

// What a job has unheld between two passes. While all that it adds turns out to be held by nobody,
// so is what it has added since the last pass: else a straight rise would come in steps that are as
// irregular as the passes. Pure.
class UnheldEstimate {
 public:
  // A pass is done. `own_bytes`: of all the job's segments, when the pass listed them.
  // `confirmed_bytes`: of those that nobody held in this pass and in the one before.
  // `hidden_bytes`: as much of them may be held by processes that refuse to be read.
  void add_pass(std::uint64_t own_bytes, std::uint64_t confirmed_bytes, std::uint64_t hidden_bytes);
  // Of all the job's segments, now.
  void add_listing(std::uint64_t own_bytes) { own_bytes_ = own_bytes; }
  bool wants_listing() const { return piles_up_ || carried_; }
  // `found_bytes`: by the last pass.
  std::optional<std::uint64_t> unheld_bytes(std::optional<std::uint64_t> found_bytes);

 private:
  std::uint64_t own_bytes_ = 0;
  std::optional<std::uint64_t> own_before_bytes_;  // when the last pass began
  // When the pass before the last began: segments that nobody was seen to hold, and all the rest.
  std::uint64_t confirmed_bytes_ = 0;
  std::optional<std::int64_t> rest_bytes_;
  std::uint64_t hidden_bytes_ = 0;
  bool piles_up_ = false;  // all that was added between two passes is unheld
  // What was last counted ahead of the passes.
  struct Carried {
    std::uint64_t unheld_bytes;
    std::uint64_t own_bytes;
    int passes_since;
  };
  std::optional<Carried> carried_;
};

// What a job has in /dev/shm, between two passes: reads the names there, and only of new files
// more. Not thread-safe.
class ShmListing {
 public:
  // Begins again with what a pass has found; `of_job`: the inodes of the job's.
  void begin(const std::vector<ShmSegment>& segments, const std::unordered_set<ino_t>& of_job);
  // The job's bytes now. New files are the job's by their names, or all are.
  std::uint64_t update(const std::string& directory, const ShmMakers& job, bool counts_all);

 private:
  std::unordered_map<ino_t, std::uint64_t> own_;  // bytes
  std::unordered_set<ino_t> others_;
  std::uint64_t in_folders_bytes_ = 0;  // of the job; looked at by passes only
};

// Watches /dev/shm as a whole: leaked segments are in no process's memory. How much is used is
// asked at every tick; who holds the named segments costs a search of every process, so it is done
// in slices of milliseconds that add up to 1 % of the time (5 % for the first pass),
// and soon again only where a change of what is used, or a segment newly without a holder, gives a
// reason to.
//
// Other jobs of the machine leak there too. A segment is the job's when its name has the pid of one
// of its processes, or when a pass has seen one of them map it or have it open; it stays the job's
// when they have exited. Not thread-safe.
class ShmWatch {
 public:
  struct Options {
    std::string directory = "/dev/shm";
    std::string proc_root = "/proc";
    uid_t own_uid = ::geteuid();
    double cost_share = 0.01;        // of one CPU
    double first_cost_share = 0.05;  // likewise, of the first pass, which knows no process yet
    // Of one tick: at least, where the share allows it, and at most, where ticks are far apart.
    std::int64_t slice_ns = 5'000'000;
    std::int64_t longest_slice_ns = 50'000'000;
    // What is charged: on a busy machine a little work takes long, and that costs nobody anything.
    std::function<std::int64_t()> spent_ns = thread_cpu_ns;
    // From the begin of one pass to that of the next: while nothing changes, and at least.
    std::int64_t pass_interval_ns = 10 * kNsPerSecond;
    std::int64_t least_interval_ns = kNsPerSecond / 2;
    std::function<std::optional<std::uint64_t>(const std::string&)> used_bytes = used_bytes_of;
    bool counts_all = false;  // all segments are the job's: in a container's own /dev/shm
  };

  // `clock` must outlive this.
  ShmWatch(Options options, const Clock& clock);
  ShmWatch(const ShmWatch&) = delete;  // a pass refers to its members
  ShmWatch& operator=(const ShmWatch&) = delete;

  // Once per tick: spends what the budget allows and fills the dev_shm fields. `job`: its processes
  // now.
  void sample(SystemSample& sample, std::span<const ProcessKey> job);
  const std::optional<ShmReport>& report() const { return report_; }
  // Of all of /dev/shm, at the last tick.
  std::optional<std::uint64_t> used_bytes() const { return used_bytes_; }
  // The job's files, held or not, as the last pass has found them.
  const std::unordered_set<ino_t>& of_job() const { return of_job_; }

 private:
  bool is_due(std::int64_t now_ns) const;
  void advance();
  void list_own();
  void finish_pass();
  bool is_of_job(const ShmSegment& segment) const;

  Options options_;
  const Clock& clock_;
  ShmMakers makers_;
  HolderSearch search_;
  std::int64_t next_slice_ns_ = 0;    // as the budget has it
  std::int64_t last_slice_ns_ = 0;    // when it began
  std::int64_t next_listing_ns_ = 0;  // likewise
  std::int64_t pass_began_ns_ = 0;
  std::int64_t interval_ns_;  // after a change; longer and longer while passes find nothing new
  bool unconfirmed_ = false;  // the last pass found segments newly without a holder
  std::optional<std::uint64_t> used_bytes_;         // of /dev/shm, now
  std::optional<std::uint64_t> used_before_bytes_;  // when the last pass began
  std::optional<std::uint64_t> used_listed_bytes_;  // when the job's segments were last listed
  UnheldEstimate estimate_;
  ShmListing listing_;
  std::optional<ShmPass> pass_;
  std::optional<ShmReport> report_;
  std::unordered_set<ino_t> of_job_;  // what passes have found to be the job's
  std::optional<std::unordered_set<ino_t>> unheld_before_;  // by the pass before; anybody's
};

// The /dev/shm that `pid` sees: a container has its own. Empty when we may not read it.
std::string shm_directory_of(const std::string& proc_root, pid_t pid);

}  // namespace tidemark::monitor
