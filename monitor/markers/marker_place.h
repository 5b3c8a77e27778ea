// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/process_key.h"
#include "common/result.h"

// Where the marker files of a process are; the rule is in api/tidemark.h.
namespace tidemark::monitor {

// Seen from outside; the process may live in a container with other pids, users and mounts.
struct MarkerPlace {
  std::string base;       // the process's /dev/shm, by a path that works for us
  std::string directory;  // in it: "tidemark-1000"
  uid_t owner = 0;        // who must own directory and files
  pid_t inner_pid = 0;    // the pid that the process itself sees
  std::string prefix;     // of its files: "141495-153612-4026531836."
};

// kPermission when we may not look into the process, kGone when it has ended.
Result<MarkerPlace> locate_markers(const ProcessKey& key);

// What the name of a marker file, or of the draft of one, says.
struct MarkerFileName {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t pid_namespace = 0;  // inode number
  bool draft = false;
};
std::optional<MarkerFileName> parse_marker_file_name(std::string_view name);

// The user id inside a user namespace for one outside, from the text of /proc/PID/uid_map.
std::optional<uid_t> map_uid_inside(std::string_view uid_map, uid_t outside);

// Inode number of the pid namespace that /proc/`who` is in ("self" or a pid).
Result<std::uint64_t> pid_namespace_of(const std::string& who);

}  // namespace tidemark::monitor
