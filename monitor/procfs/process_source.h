// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
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

// The process table of this machine, read by libproc2. It reads the real /proc only.
Result<std::unique_ptr<ProcessSource>> make_procps_source();

// The line of the process table of one pid, without a scan of the whole table.
Result<ProcessEntry> read_process_entry(const std::string& proc_root, pid_t pid);

// The process that a thread belongs to; of a process, itself.
Result<pid_t> process_of_thread(const std::string& proc_root, pid_t thread);

// The pid that the kernel handed out last, or nullopt. While it is the same, no process has
// started.
std::optional<std::uint64_t> last_pid(const std::string& proc_root);

// The children that one thread forked: task/TID/children below the open directory /proc/PID.
// kNotFound when the thread has ended or the kernel has no such file.
Result<std::vector<pid_t>> children_of_thread(int process_directory, pid_t tid);

// The children that any thread of the process forked. A child is listed under its own forker only,
// and moves to another thread when that one ends; the walk starts again when it sees this.
Result<std::vector<pid_t>> children_of_threads(int process_directory);

}  // namespace tidemark::monitor
