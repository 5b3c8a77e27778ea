// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/process_key.h"
#include "common/result.h"
#include "monitor/procfs/proc_files.h"
#include "monitor/procfs/proc_smaps.h"

namespace tidemark::monitor {

// The open /proc files of one watched process: two descriptors, three once statm was read. It holds
// the directory /proc/PID, so that a reused pid can never be mistaken for it: every read of an
// ended process fails with kGone. The status file stays open as well (a pread is half the price of
// open, read, close). When the tool is about to run out of descriptors, the handle keeps none and
// opens for each read, checking the start time each time. Not thread-safe.
class ProcessHandle {
 public:
  // `proc_root` is "/proc" but for tests. kGone when the process has ended or the pid belongs to
  // another process.
  static Result<ProcessHandle> open(const std::string& proc_root, const ProcessKey& key);

  const ProcessKey& key() const { return key_; }
  bool keeps_descriptors() const { return static_cast<bool>(directory_); }

  Result<StatusFields> status() const;
  Result<StatmFields> statm();
  // smaps_rollup, or smaps where the kernel has no rollup, refuses it for this process or does not
  // split it. kGone also for what has no memory: zombies, exiting processes, kernel threads.
  Result<PssFields> pss();
  // /proc/PID/smaps in one pass, piece by piece. kGone as pss().
  Status smaps(const std::function<void(std::string_view piece)>& take) const;
  // Empty for kernel threads and zombies. Bounded: what exceeds 128 KiB is cut.
  Result<std::vector<std::string>> argv() const;
  // Ends in " (deleted)" when the file was replaced or removed. kNotFound for kernel threads.
  Result<std::string> exe() const;
  // Children forked by any of its threads. `threads`, when status() said so a moment ago, saves
  // the walk over task/ for a process with one thread. kUnsupported when the kernel lacks
  // CONFIG_PROC_CHILDREN.
  Result<std::vector<pid_t>> children(std::optional<std::uint32_t> threads = std::nullopt) const;
  // Differs after every exec, equal in parent and forked child. nullopt when it may not be read.
  std::optional<std::uint64_t> stack_start() const;
  // "NAME=value" entries whose name is in `names`; the rest is not kept. Reads the first MiB.
  Result<std::vector<std::string>> environment(std::span<const std::string> names) const;

 private:
  // The kept directory, or one that lives for a single call.
  struct Directory {
    int fd = -1;
    Fd own;
  };

  ProcessHandle(ProcessKey key, std::string path, Fd directory, Fd status);
  Result<Directory> directory() const;
  StatusFields status_of_another_thread(const StatusFields& leader) const;
  Result<Fd> open_in(const Directory& directory, const std::string& name) const;
  Result<PssFields> pss_from_rollup(const Directory& directory) const;
  Result<PssFields> pss_from_smaps(const Directory& directory) const;
  Result<std::string> read_start(const std::string& name, std::size_t limit_bytes) const;
  // Turns "no such file" into kGone when it is the process that is missing, and names the file.
  Error explain(const Directory& directory, const std::string& name, Error error) const;

  ProcessKey key_;
  std::string path_;  // "/proc/PID"
  Fd directory_;
  Fd status_;
  Fd statm_;
  bool rollup_lacks_split_ = false;
};

// Identity of a living pid: reads its start time. kGone when there is no such process.
Result<ProcessKey> process_key_of(const std::string& proc_root, pid_t pid);

}  // namespace tidemark::monitor
