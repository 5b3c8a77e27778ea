// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::monitor {

// One line of /proc/PID/cgroup. Version 2 has no controllers in it.
struct CgroupMembership {
  std::vector<std::string> controllers;
  std::string path;  // as seen from our cgroup namespace: may begin with "/.."
  bool v2 = false;
};
std::vector<CgroupMembership> parse_cgroup(std::string_view text);

// One line of /proc/PID/mountinfo.
struct Mount {
  std::string root;  // which folder of the file system is mounted
  std::string mount_point;
  std::string fs_type;
  std::vector<std::string> super_options;
};
std::vector<Mount> parse_mountinfo(std::string_view text);

// `path` below `mount_root`, without a leading slash; nullopt when it is not below it, or is by a
// way that our cgroup namespace hides.
std::optional<std::string> path_below(std::string_view path, std::string_view mount_root);

// The control group that accounts the memory of a process.
struct MemoryCgroup {
  bool v2 = false;
  std::string path;
  // Its folder and those above it, up to the root of the mount. Empty when it is not mounted here.
  std::vector<std::string> directories;
};

// In a hybrid layout the memory controller belongs to v1 or to v2; this is the one that has it.
// `root` is "" but for tests. nullopt when the process is gone or has no control group.
std::optional<MemoryCgroup> memory_cgroup_of(const std::string& root, pid_t pid);

// What of a control group's memory counts: anonymous and shared memory, in RAM or in swap. Page
// cache does not, the kernel gives it up before it kills. Of the fields of memory.stat only these
// do not overlap: "shmem" is also in "file" and "cache", "unevictable" cuts across all of them.
// What is in the swap cache is in RAM and in swap; it counts once.

// `stat` is memory.stat, `swap_current` the text of memory.swap.current (empty without swap
// accounting).
std::optional<std::uint64_t> cgroup_v2_used_bytes(std::string_view stat,
                                                  std::string_view swap_current);
// nullopt on kernels before 4.11, whose memory.stat does not tell shared memory from page cache.
std::optional<std::uint64_t> cgroup_v1_used_bytes(std::string_view stat);

// The rest of what is charged to the group, for the most part: files that were read or written, and
// that the kernel drops when it needs the room. `stat` is memory.stat.
std::optional<std::uint64_t> cgroup_page_cache_bytes(std::string_view stat, bool is_v2);

}  // namespace tidemark::monitor
