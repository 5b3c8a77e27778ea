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

// Code of a process with which it makes a system call and goes back from it; 0: it has none. It
// lies in what the kernel has put into the process, and in files that the process cannot change.
struct SystemCallCode {
  std::uint64_t call = 0;         // syscall; ret
  std::uint64_t end_handler = 0;  // mov $15,%rax; syscall: where signal handlers return to
  std::uint64_t load_number = 0;  // pop %rax; ret: leads there as well, in programs without the one

  bool is_complete() const { return call != 0 && (end_handler != 0 || load_number != 0); }
};
SystemCallCode find_system_call_code(const std::vector<Mapping>& mappings,
                                     const RemoteMemory& memory);
// To registers with which a thread makes the call again that it was interrupted in: the number of a
// call that was interrupted before is no longer in them, and the kernel forgets it when a handler
// ends. Compilers load it right before the instruction; elsewhere it stays SYS_restart_syscall.
void restore_number(Registers& resumed, const RemoteMemory& memory);
// Whether all of it is still there.
bool is_there(const SystemCallCode& code, const RemoteMemory& memory);

// How a thread goes on by itself if its tracer is killed in the middle of a system call that is not
// the thread's own. The call looks to the kernel like one of a signal handler: behind it the thread
// returns to the code that ends handlers, and its stack has the frame of a signal with the
// registers, the extended state and the signal mask that it was found with. The call that it was in
// it makes again. There is one difference: a wait for so long begins anew; or it ends with EINTR
// where it had been interrupted before and its code does not show which call it is.
//
// The frame lies below the red zone of the thread's own stack, where signal handlers have theirs.
// What was there is put back.
class WayBack {
 public:
  // For a thread that is stopped. `memory` outlives this; `mappings`: of now. An error says why the
  // thread may not make a system call now, or that there is no safe place for a frame.
  static Result<WayBack> prepare(const TracedThread& thread, const RemoteMemory& memory,
                                 const std::vector<Mapping>& mappings, const SystemCallCode& code);

  // Whether there would be no difference at all.
  bool is_exact() const { return is_exact_; }
  // The stack pointer behind the call.
  std::uint64_t stack() const { return stack_; }
  // One for a process that the call starts, and that is not to run: whatever lets it run, it exits.
  std::uint64_t stack_of_new_process() const { return exit_stack_; }

  // Between these two the frame is on the stack.
  Status lay();
  Status take_up() const;

 private:
  explicit WayBack(const RemoteMemory& memory) : memory_(&memory) {}

  const RemoteMemory* memory_;
  bool is_exact_ = false;
  std::uint64_t stack_ = 0;
  std::uint64_t exit_stack_ = 0;
  std::uint64_t begin_ = 0;  // of the bytes
  std::vector<char> bytes_;
  std::vector<char> before_;
};

struct SystemCall {
  std::uint64_t instruction = 0;  // at which it is made
  std::uint64_t number = 0;
  std::array<std::uint64_t, 4> arguments = {};
};

// Makes a system call in a thread that is stopped, in between: nothing but the call runs, signals
// wait, and the thread is then stopped as it was found, so that the kernel goes on with the call
// that it was in. What the call returns, which is -errno where it fails. An error: the thread has
// exited, or is still in the call after the deadline.
//
// Of the process nothing is changed but for the stack below the red zone, as long as the call takes
// (see WayBack). If we are killed meanwhile, or give up waiting, the thread goes on as it was.
//
// `on_new_process` is called in between with a process that the call has started, if the options of
// the thread ask for that.
Result<std::int64_t> make_system_call(TracedThread& thread, const SystemCall& call, WayBack& back,
                                      Deadline deadline,
                                      const std::function<void(pid_t)>& on_new_process = {});
// In a process that never runs: nothing is written to it, and nothing leads the thread back.
Result<std::int64_t> make_system_call_for_good(TracedThread& thread, const SystemCall& call,
                                               Deadline deadline);

}  // namespace tidemark::inject
