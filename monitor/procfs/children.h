// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "common/result.h"

namespace tidemark::monitor {

// The children that one thread forked: task/TID/children below the open directory /proc/PID.
// kNotFound when the thread has ended or the kernel has no such file.
Result<std::vector<pid_t>> children_of_thread(int process_directory, pid_t tid);

// The children that any thread of the process forked. A child is listed under its own forker only,
// and moves to another thread when that one ends; the walk starts again when it sees this.
Result<std::vector<pid_t>> children_of_threads(int process_directory);

}  // namespace tidemark::monitor
