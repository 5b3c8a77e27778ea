// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {

// Walks the stacks of threads of another process by the unwind tables of its files. What was read
// of a file is kept, so that the second walk is fast. Not thread-safe.
class RemoteStack {
 public:
  // Files are opened as the process sees them, in its own mount namespace. `memory` and `space`
  // outlive it.
  static Result<RemoteStack> open(pid_t pid, const RemoteMemory& memory, const AddressSpace& space);
  ~RemoteStack();
  RemoteStack(RemoteStack&&) noexcept;
  RemoteStack& operator=(RemoteStack&&) = delete;

  // Program counters, innermost first: that of the first frame, then return addresses. An error
  // where the walk does not get to the outermost frame.
  Result<std::vector<std::uint64_t>> walk(const Registers& registers);

  struct State;

 private:
  explicit RemoteStack(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Where a thread may call into the dynamic linker and the allocator.
struct CallSafety {
  const AddressSpace* space = nullptr;
  const RemoteModule* linker = nullptr;  // ld.so
  const RemoteModule* libc = nullptr;
  std::vector<RemoteSymbol> libc_symbols;
  std::vector<const RemoteModule*> allocators;  // other modules that have a malloc
  const RemoteMemory* memory = nullptr;
};

// Empty: a thread with this stack holds no lock that dlopen needs and runs no code that a call of
// it would disturb. Else why not. `registers`: of the innermost frame.
//
// A thread that is in code of its own is fine. In libc it is only where it waits in a system call
// that holds nothing; the frames that start a thread are no matter.
std::string why_unsafe(const CallSafety& safety, const std::vector<std::uint64_t>& stack,
                       const Registers& registers);

}  // namespace tidemark::inject
