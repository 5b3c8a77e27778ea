// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/records.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/limits.h"

namespace tidemark::monitor {

// Processes that the kernel killed for want of memory.
struct OomKills {
  std::uint64_t count = 0;
  bool whole_machine = false;  // the control group does not tell: anybody's process may be meant
};

// Reads the machine's side of a tick: meminfo, pressure, control group. One instance per run.
// Missing files leave their fields unknown. Holds up to eight descriptors. Not thread-safe.
class SystemReader {
 public:
  // `root` is "" but for tests, which give a folder that holds proc/ and sys/fs/cgroup/. The
  // control group and the limits are those of `pid`; without one, the limit is the machine's.
  SystemReader(std::string root, std::optional<pid_t> pid);

  // Everything but the dev_shm fields.
  SystemSample sample();

  const EffectiveLimit& limit() const { return limit_; }
  // Reads the limit of `pid`, a living process, again: administrators and batch systems change
  // it, or move the process. What has been learned stays when the process is gone.
  void refresh_limit(std::optional<pid_t> pid);

  // Since the last call; the first call counts from construction.
  OomKills new_oom_kills();

 private:
  void open_cgroup_files();
  void add_cgroup(SystemSample& sample);
  std::optional<std::uint64_t> total_oom_kills(bool whole_machine);

  std::string root_;
  EffectiveLimit limit_;
  KeptFile meminfo_;
  KeptFile pressure_;
  KeptFile vmstat_;
  KeptFile cgroup_stat_;
  KeptFile cgroup_charged_;
  KeptFile cgroup_swap_;
  KeptFile cgroup_pressure_;
  KeptFile cgroup_events_;
  // Totals at the last call; unknown where the file did not tell.
  std::optional<std::uint64_t> cgroup_oom_kills_;
  std::optional<std::uint64_t> machine_oom_kills_;
  std::array<char, 16U << 10U> buffer_{};
};

}  // namespace tidemark::monitor
