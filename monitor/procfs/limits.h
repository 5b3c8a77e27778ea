// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/procfs/cgroup_files.h"

namespace tidemark::monitor {

// A limit that a control group sets for all that is in it and below it.
struct CgroupLimit {
  std::string directory;
  std::uint64_t bytes = 0;
  std::string source;      // "cgroup v2 memory.max of /user.slice/job"
  bool is_hidden = false;  // v1: of a group above that cannot be seen; told by the group itself
};
// Of the group and those above it, in this order: the lower one of "max" and "high" each.
std::vector<CgroupLimit> cgroup_limits(const MemoryCgroup& cgroup);

// The smallest limit that will stop a process: of its control group and all groups above (v1 and
// v2, limits "max" and "high"), RLIMIT_AS and RLIMIT_DATA, and physical memory.
struct EffectiveLimit {
  std::optional<std::uint64_t> bytes;
  std::string source;  // "cgroup v2 memory.max of /user.slice/job", "RLIMIT_AS", "physical memory"
  std::string note;    // what could not be seen, for people; mostly empty

  std::optional<std::uint64_t> cgroup_limit_bytes;  // the smallest of the control groups alone
  // The group with that limit, or the process's own when there is none: where the usage that
  // counts is read. Empty when no group is visible.
  std::string cgroup_directory;
  std::string process_cgroup_directory;  // the group that the process itself is in; may be empty
  bool cgroup_v2 = false;
};

// `root` is "" but for tests, which give a folder that holds proc/ and sys/fs/cgroup/.
EffectiveLimit effective_limit(const std::string& root, pid_t pid);

// Of all processes together: physical memory, and in a container its control group, which is that
// of process 1. Other control groups and rlimits are some processes' own.
EffectiveLimit machine_limit(const std::string& root);

// A number as memory.max, memory.high and memory.limit_in_bytes hold it; nullopt for "max", for
// v1's huge number that means the same, and for anything else.
std::optional<std::uint64_t> parse_cgroup_limit(std::string_view text);

// The soft limit of a line of /proc/PID/limits ("Max address space"); nullopt when unlimited.
std::optional<std::uint64_t> parse_soft_limit(std::string_view text, std::string_view name);

}  // namespace tidemark::monitor
