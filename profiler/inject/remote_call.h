// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {

// Two pieces of code of the process that end a call; 0: it has none.
struct CallEnding {
  std::uint64_t store_result = 0;  // mov %rax,(%rbx); pop %rbx; ret
  std::uint64_t end_handler = 0;   // mov $15,%rax; syscall: where signal handlers return to
};
CallEnding find_call_ending(const AddressSpace& space, const RemoteMemory& memory);

// The stack that the kernel or the C library gave the thread, if it is on it now: that of the first
// thread, or one that ends with the thread's own data. Not a stack within other memory: of
// coroutines, goroutines or signal handlers. nullptr: it is on no such stack.
const Mapping* find_own_stack(const Registers& registers, const std::vector<Mapping>& mappings);
// The same, with room for a call.
std::optional<AddressRange> own_stack(const Registers& registers,
                                      const std::vector<Mapping>& mappings);

// Calls functions of the process in one of its threads, which is stopped at a place where it may
// call anything (see why_unsafe).
//
// A call looks to the kernel like a signal handler: the stack has a frame of a signal with the
// registers, the extended state and the signal mask of the thread, and the function returns to the
// code that ends handlers. So the thread goes on where it was even if nobody traces it any more by
// then: when the tool is killed in between, or gives up waiting.
class RemoteCall {
 public:
  // `thread` is stopped and stays so, and outlives it, as `memory` does. `mappings`: of now.
  static Result<RemoteCall> prepare(TracedThread& thread, const RemoteMemory& memory,
                                    const std::vector<Mapping>& mappings, const CallEnding& ending);

  // The result. An error: the call was not made, has crashed, or takes too long; in the last case
  // it goes on without us. After an error no other call can be made.
  Result<std::uint64_t> call(std::uint64_t function, std::initializer_list<std::uint64_t> arguments,
                             Deadline deadline);
  // The address of a text that lives as long as this, for arguments.
  Result<std::uint64_t> put_text(const std::string& text);
  // After the last call: signals that came meanwhile interrupt the system call that the thread was
  // in, as they would have without us.
  Status let_signals_in();

 private:
  RemoteCall(TracedThread& thread, const RemoteMemory& memory, const CallEnding& ending)
      : thread_(thread), memory_(memory), ending_(ending) {}
  std::vector<char> frame_at(std::uint64_t address) const;
  Result<int> answer(int signal) const;
  Result<std::uint64_t> begin(std::uint64_t function,
                              std::initializer_list<std::uint64_t> arguments);
  Result<std::uint64_t> wait_for_end(std::uint64_t frame, Deadline deadline);
  void abandon(std::uint64_t frame);

  TracedThread& thread_;
  const RemoteMemory& memory_;
  CallEnding ending_;
  bool has_failed_ = false;
  Registers stopped_ = {};      // as it was found
  Registers registers_ = {};    // with which the thread goes on
  std::vector<char> extended_;  // likewise
  std::uint64_t mask_ = 0;
  std::uint64_t top_ = 0;     // the stack below this address is free
  std::uint64_t lowest_ = 0;  // and is mapped from here on
};

}  // namespace tidemark::inject
