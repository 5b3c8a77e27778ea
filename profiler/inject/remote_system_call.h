// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {

// Where a process has an instruction that makes a system call: in what the kernel has put into it,
// else in its own code. 0: it has none that can be read.
std::uint64_t find_system_call(const std::vector<Mapping>& mappings, const RemoteMemory& memory);
// Whether there is one at this address.
bool is_system_call(std::uint64_t address, const RemoteMemory& memory);

struct SystemCall {
  std::uint64_t instruction = 0;  // at which it is made
  std::uint64_t number = 0;
  std::array<std::uint64_t, 4> arguments = {};
};

// Why a thread that is stopped may not make one now; empty: it may.
std::string why_no_system_call(const TracedThread& thread);

// Makes a system call in a thread that is stopped, in between: nothing but the call runs, nothing
// is written to the process, signals wait, and the thread is then stopped as it was found, so that
// the kernel goes on with the call that it was in. What the call returns, which is -errno where it
// fails. An error: the thread has exited, or is still in the call after the deadline.
//
// `on_new_process` is called in between with a process that the call has started, if the options of
// the thread ask for that.
Result<std::int64_t> make_system_call(TracedThread& thread, const SystemCall& call,
                                      Deadline deadline,
                                      const std::function<void(pid_t)>& on_new_process = {});

}  // namespace tidemark::inject
