// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace tidemark::inject
