// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/process_key.h"
#include "live/watch_system.h"
#include "profiler/collect/shm_growth.h"

namespace tidemark::check {

// A process that outlived the command that it belongs to.
struct Stray {
  ProcessKey key;
  std::string comm;  // raw bytes
  std::uint64_t bytes = 0;
};

// What is left when a command has ended: memory that nobody gives back.
struct LeftBehind {
  std::vector<Stray> strays;
  std::uint64_t stray_bytes = 0;           // footprint of all of them, shared pages once
  ShmGrowthReport segments;                // new or grown in /dev/shm, and held by nobody
  std::optional<std::uint64_t> gpu_bytes;  // of the strays; nullopt: no GPU was seen
  std::string problem;                     // why it may be incomplete; empty: it is not

  std::uint64_t bytes() const { return stray_bytes + segments.grown_bytes; }
};

// Looks before the first and after each of the commands that this process runs. Not thread-safe.
class LeftBehindMeter {
 public:
  // What is in /dev/shm by now is nobody's doing. `system` outlives it.
  explicit LeftBehindMeter(live::WatchSystem& system);
  // A process of a command: segments of others do not count.
  void add_process(const ProcessKey& key) {
    pids_.insert(key.pid);
    seen_.push_back(key);
  }
  // What a command's processes have in /dev/shm, by inode.
  void add_segments(const std::unordered_set<ino_t>& segments) {
    segments_.insert(segments.begin(), segments.end());
  }
  // When a command has ended, while we are still the reaper of its orphans: all that is left, of
  // earlier commands too. Whoever is about to end gets a moment for it.
  LeftBehind measure();
  // Ends them, so that the next command begins alone.
  void end_strays();

 private:
  struct Below;
  Below watch_below();

  live::WatchSystem* system_;
  collect::ShmGrowth before_;
  collect::PidSet pids_;
  std::unordered_set<ino_t> segments_;
  std::vector<ProcessKey> seen_;  // without those that are known to have exited
};

}  // namespace tidemark::check
