// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/fd.h"
#include "common/process_key.h"
#include "common/result.h"
#include "monitor/proc_smaps.h"
#include "monitor/proc_status.h"

namespace tidemark::monitor {

// /proc/PID/io.
struct IoFields {
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
};

// The open /proc files of one watched process. It holds the descriptor of /proc/PID, so that a
// reused pid can never be mistaken for it: every read of a dead process fails with kGone. The
// status file stays open as well (a pread is half the price of open, read, close). When the
// process runs out of descriptors the handle still works, by opening per read. Not thread-safe.
class ProcessHandle {
 public:
  // `proc_root` is "/proc" but for tests. kGone when the pid is dead or belongs to another process.
  static Result<ProcessHandle> open(const std::string& proc_root, const ProcessKey& key);

  const ProcessKey& key() const { return key_; }
  Result<StatusFields> status();
  // smaps_rollup, or smaps where the kernel has no rollup or refuses it for this process.
  Result<PssFields> pss() const;
  // Empty for kernel threads and zombies. Bounded: what exceeds 128 KiB is cut.
  Result<std::vector<std::string>> argv() const;
  Result<std::string> exe() const;
  // Children forked by any of its threads. kUnsupported when the kernel lacks CONFIG_PROC_CHILDREN.
  Result<std::vector<pid_t>> children() const;
  Result<IoFields> io() const;
  // "NAME=value" entries whose name is in `names`; the rest is not kept.
  Result<std::vector<std::string>> environment(const std::vector<std::string>& names) const;

 private:
  ProcessHandle(ProcessKey key, std::string path, Fd directory, Fd status);

  ProcessKey key_;
  std::string path_;  // "/proc/PID", for messages and for when directory_ could not stay open
  Fd directory_;
  Fd status_;
};

// Identity of a living pid: reads its start time. kGone when there is no such process.
Result<ProcessKey> process_key_of(const std::string& proc_root, pid_t pid);

}  // namespace tidemark::monitor
