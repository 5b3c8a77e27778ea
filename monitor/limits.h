// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tidemark::monitor {

// The smallest limit that will stop a process: of its control group and all groups above (v1 and
// v2, limits "max" and "high"), RLIMIT_AS and RLIMIT_DATA, and physical memory.
struct EffectiveLimit {
  std::optional<std::uint64_t> bytes;
  std::string source;  // "cgroup v2 memory.max of /user.slice/job", "RLIMIT_AS", "physical memory"
  std::string cgroup_directory;  // where the usage that counts against it is read; may be empty
  bool cgroup_v2 = false;
};

EffectiveLimit effective_limit(const std::string& root, pid_t pid);

}  // namespace tidemark::monitor
