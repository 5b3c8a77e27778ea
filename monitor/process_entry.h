// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "common/result.h"
#include "monitor/process_source.h"

namespace tidemark::monitor {

// The line of the process table of one pid, without a scan of the whole table.
Result<ProcessEntry> read_process_entry(const std::string& proc_root, pid_t pid);

}  // namespace tidemark::monitor
