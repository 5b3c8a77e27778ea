// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "common/process_key.h"

namespace tidemark::monitor {

// When the machine started; 0 when it does not tell.
std::int64_t boot_wall_s(const std::string& proc_root);
// When a process started, from field 22 of its /proc/PID/stat.
std::int64_t start_wall_s(std::int64_t boot_wall_s, std::uint64_t start_ticks);
// Start times are ticks since boot and the wall clock may have been set: allow for some seconds.
inline constexpr std::int64_t kClockSlackS = 5;

// The processes of a job, whose segments in /dev/shm count: those that run, and those that have
// exited until a whole pass over /dev/shm has seen what they left. Not thread-safe.
class ShmMakers {
 public:
  explicit ShmMakers(std::string proc_root);

  // The job's processes now; once per tick.
  void set_running(std::span<const ProcessKey> job);
  bool is_running(pid_t pid) const { return running_.contains(pid); }
  // Whether a file that bears this pid in its name is of one of them. The pid is that of the
  // maker's own namespace, and may have been another process's before.
  bool may_have_made(pid_t pid_in_name, std::int64_t created_wall_s) const;

  void begin_pass();
  // The segments of those that had exited when it began are known by now.
  void end_pass();

 private:
  enum class State { kRunning, kExited, kExitedBeforePass };
  struct Maker {
    pid_t pid_in_names = 0;
    std::int64_t start_wall_s = 0;
    State state = State::kRunning;
  };
  void add(const ProcessKey& key);
  void add_name(const Maker& maker);

  std::string proc_root_;
  std::int64_t boot_wall_s_;
  std::unordered_map<ProcessKey, Maker> makers_;
  std::unordered_set<pid_t> running_;
  // By the pid in the names of their segments: when the first of them started.
  std::unordered_map<pid_t, std::int64_t> start_by_name_;
};

}  // namespace tidemark::monitor
