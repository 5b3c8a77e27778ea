// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/result.h"
#include "monitor/procfs/process_source.h"

namespace tidemark::monitor {

// The line of the process table of one pid, without a scan of the whole table.
Result<ProcessEntry> read_process_entry(const std::string& proc_root, pid_t pid);

// The process that a thread belongs to; of a process, itself.
Result<pid_t> process_of_thread(const std::string& proc_root, pid_t thread);

// The pid that the kernel handed out last, or nullopt. When it stands still, nobody was born.
std::optional<std::uint64_t> last_pid(const std::string& proc_root);

}  // namespace tidemark::monitor
