// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/process_key.h"
#include "common/result.h"

namespace tidemark::monitor {

// One line of the process table. Threads are not processes and do not appear.
struct ProcessEntry {
  ProcessKey key;
  pid_t ppid = 0;
  pid_t process_group = 0;
  uid_t uid = 0;
  char state = '?';
  std::uint32_t threads = 0;
  std::uint64_t cpu_ticks = 0;  // user + system since its start
  std::string comm;             // raw bytes
};

// The whole process table: libproc2 in the tool, scripted rows in tests. Costs a scan of /proc,
// so it is for discovery, not for every tick. Not thread-safe.
class ProcessSource {
 public:
  virtual ~ProcessSource() = default;
  // A process that vanishes during the scan is left out; that is not an error.
  virtual Result<std::vector<ProcessEntry>> snapshot() = 0;
};

}  // namespace tidemark::monitor
