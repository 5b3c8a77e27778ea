// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "monitor/limits.h"

namespace tidemark::monitor {

// Reads the machine's side of a tick: meminfo, pressure, control group. One instance per run.
// Missing files leave their fields unknown. Not thread-safe.
class SystemReader {
 public:
  // `root` is "" but for tests, which give a folder that holds proc/ and sys/fs/cgroup/. The
  // control group and the limits are those of `pid`.
  SystemReader(std::string root, pid_t pid);

  SystemSample sample();
  const EffectiveLimit& limit() const { return limit_; }
  // Kills by the kernel in the watched control group since the last call.
  std::uint64_t new_oom_kills();

 private:
  std::string root_;
  EffectiveLimit limit_;
  std::uint64_t oom_kills_seen_ = 0;
};

}  // namespace tidemark::monitor
