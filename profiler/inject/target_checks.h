// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace tidemark::inject {

// Two users, and what this machine lets one do to the processes of the other.
struct TraceRights {
  pid_t pid = 0;
  std::vector<std::uint64_t> uids;  // of the process: real, effective, saved
  std::uint64_t own_uid = 0;
  bool may_trace_all = false;  // CAP_SYS_PTRACE
  int yama_scope = 0;          // kernel.yama.ptrace_scope; 0 also where there is none
};

// Why the kernel does not let us trace a process, and what to do.
struct Denial {
  std::string why;
  std::string hint;
};
Denial explain_denial(const TraceRights& rights);

// Why no system call can be made in a process, in words; ok() where nothing is known that speaks
// against it. check_target() is for more: that it loads a library.
Status check_target_of_calls(pid_t pid);

}  // namespace tidemark::inject
