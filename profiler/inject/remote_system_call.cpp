// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_system_call.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "profiler/inject/extended_state.h"
#include "profiler/inject/remote_call.h"
#include "profiler/inject/signal_frame.h"

namespace tidemark::inject {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kCall = "\x0f\x05\xc3"sv;
constexpr std::string_view kEndHandler = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"sv;
constexpr std::string_view kLoadNumber = "\x58\xc3"sv;
constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};
constexpr std::int64_t kRestartByBlock = 516;  // see traced_thread.cpp

// A frame of a signal, and the way to it: the last word of these, or all of them, are taken from
// the stack before the kernel reads what follows.
struct Frame {
  std::uint64_t load_number;
  std::uint64_t number;
  std::uint64_t end_handler;
  SignalContext context;
};

Frame make_frame(const SystemCallCode& code, const SignalContext& context) {
  Frame frame = {};
  frame.load_number = code.load_number;
  frame.number = SYS_rt_sigreturn;
  frame.end_handler = code.end_handler != 0 ? code.end_handler : code.call;
  frame.context = context;
  return frame;
}

std::uint64_t stack_pointer_of(const SystemCallCode& code, std::uint64_t frame) {
  return code.end_handler != 0 ? frame + offsetof(Frame, end_handler) : frame;
}

constexpr std::uint64_t round_down(std::uint64_t address, std::uint64_t to) {
  return address / to * to;
}

void find_in(const AddressRange& range, const RemoteMemory& memory, SystemCallCode& code) {
  constexpr std::uint64_t kMostBytes = 64U << 20U;
  constexpr std::uint64_t kPiece = 64U << 10U;  // what is read becomes memory of the process
  constexpr std::uint64_t kOverlap = kEndHandler.size() - 1;
  const std::uint64_t end = range.begin + std::min(range.end - range.begin, kMostBytes);
  for (std::uint64_t at = range.begin; at < end && !code.is_complete(); at += kPiece) {
    const auto bytes = memory.load_array<char>(at, std::min(kPiece + kOverlap, end - at));
    if (!bytes) {
      return;
    }
    const auto look_for = [&](std::string_view pattern, std::uint64_t& found) {
      const std::size_t place = std::string_view(bytes->data(), bytes->size()).find(pattern);
      found = found == 0 && place != std::string_view::npos ? at + place : found;
    };
    look_for(kCall, code.call);
    look_for(kEndHandler, code.end_handler);
    look_for(kLoadNumber, code.load_number);
  }
}

bool is_c_library(std::string_view path) {
  const std::string_view name = basename_of(path);
  return name.starts_with("libc.") || name.starts_with("libc-") || name.starts_with("ld-musl");
}

std::string why_no_system_call(const TracedThread& thread, const Registers& registers) {
  constexpr std::uint64_t kCodeOf64Bit = 0x33;
  if (registers.cs != kCodeOf64Bit) {
    return "it runs 32-bit code";
  }
  if (thread.is_in_restartable_sequence(registers)) {
    return "it is in a restartable sequence";
  }
  return "";
}

// The thread's own data begins with its address. Memory that a program has divided itself, as those
// of Go do, may hold stacks and what else register fs points to.
const Mapping* find_safe_stack(const Registers& registers, const std::vector<Mapping>& mappings,
                               const RemoteMemory& memory) {
  const Mapping* const stack = find_own_stack(registers, mappings);
  const bool is_safe = stack != nullptr && !stack->is_shared &&
                       (stack->name == "[stack]" ||
                        memory.load<std::uint64_t>(registers.fs_base) == registers.fs_base);
  return is_safe ? stack : nullptr;
}

// The kernel makes the call again where it has one of these as its result (include/linux/errno.h);
// user space never sees them.
bool is_to_be_made_again(std::int64_t result) { return result <= -512 && result >= -516; }

Registers registers_for(const SystemCall& call, const WayBack* back, const Registers& found) {
  constexpr std::uint64_t kTrap = 0x100;
  Registers registers = found;
  registers.rip = call.instruction;
  registers.rsp = back != nullptr ? back->stack() : found.rsp;
  registers.eflags &= ~kTrap;
  registers.rax = call.number;
  registers.orig_rax = ~std::uint64_t{0};  // it is in no system call that is to be made again
  registers.rdi = call.arguments[0];
  registers.rsi = call.arguments[1];
  registers.rdx = call.arguments[2];
  registers.r10 = call.arguments[3];
  return registers;
}

// Runs to where it leaves the system call that it is about to enter.
Status run_through(TracedThread& thread, Deadline deadline,
                   const std::function<void(pid_t)>& on_new_process) {
  bool is_inside = false;
  int signal = 0;
  while (true) {
    TIDEMARK_TRY_ASSIGN(const ThreadStop stop, thread.run_to_stop(deadline, signal));
    signal = 0;
    switch (stop.cause) {
      case ThreadStop::Cause::kSystemCall:
        if (is_inside) {
          return ok();
        }
        is_inside = true;
        break;
      case ThreadStop::Cause::kSignal:
        if (stop.signal != SIGSTOP) {  // the only one that cannot be held back
          return Error{Errc::kIo, fmt::format("a system call failed with signal {}", stop.signal)};
        }
        signal = stop.signal;
        break;
      case ThreadStop::Cause::kInterrupt:
        break;
      case ThreadStop::Cause::kNewProcess:
        if (on_new_process) {
          on_new_process(stop.process);
        }
        break;
    }
  }
}

Result<std::int64_t> make_once(TracedThread& thread, const Registers& registers, Deadline deadline,
                               const std::function<void(pid_t)>& on_new_process) {
  TIDEMARK_TRY(thread.set_registers(registers));
  // In this order: if we are killed in between, no signals stay blocked.
  TIDEMARK_TRY(thread.set_signal_mask(kAllSignals));
  TIDEMARK_TRY(run_through(thread, deadline, on_new_process));
  TIDEMARK_TRY_ASSIGN(const Registers now, thread.registers());
  return static_cast<std::int64_t>(now.rax);
}

// From where it leaves a system call to a stop of the sort that it was found in: only from there
// does the kernel look at the registers, and make a call again that was interrupted.
Status stop_as_found(TracedThread& thread, Deadline deadline) {
  TIDEMARK_TRY(thread.interrupt());
  int signal = 0;
  while (true) {
    TIDEMARK_TRY_ASSIGN(const ThreadStop stop, thread.run_to_stop(deadline, signal));
    if (stop.cause == ThreadStop::Cause::kInterrupt) {
      return ok();
    }
    signal = stop.signal;
  }
}

Result<std::int64_t> make(TracedThread& thread, const SystemCall& call, WayBack* back,
                          Deadline deadline, const std::function<void(pid_t)>& on_new_process) {
  TIDEMARK_TRY_ASSIGN(const Registers found, thread.registers());
  TIDEMARK_TRY_ASSIGN(const std::uint64_t mask, thread.signal_mask());
  TIDEMARK_TRY(back != nullptr ? back->lay() : ok());
  Result<std::int64_t> made = std::int64_t{0};
  do {
    made = make_once(thread, registers_for(call, back, found), deadline, on_new_process);
  } while (made && is_to_be_made_again(*made));
  if (!made && (thread.has_exited() || made.error().sys_errno == ETIMEDOUT)) {
    return made;  // what runs goes on by itself; what has exited cannot be put back
  }
  // In the opposite order: as long as the registers lead to the frame, all of it is put back.
  Status restored = thread.set_signal_mask(mask);
  const Status registers_restored = thread.set_registers(found);
  restored = restored ? registers_restored : restored;
  const Status taken_up = registers_restored && back != nullptr ? back->take_up() : ok();
  restored = restored ? taken_up : restored;
  restored = restored && made ? stop_as_found(thread, deadline) : restored;
  return restored ? made : Result<std::int64_t>(restored.error());
}

}  // namespace

SystemCallCode find_system_call_code(const std::vector<Mapping>& mappings,
                                     const RemoteMemory& memory) {
  SystemCallCode code;
  const auto look_in = [&](const auto& is_wanted) {
    for (auto each = mappings.begin(); each != mappings.end() && !code.is_complete(); ++each) {
      const bool cannot_change = each->name == "[vdso]" || each->name.starts_with('/');
      if (each->is_executable && !each->is_writable && cannot_change && is_wanted(each->name)) {
        find_in(each->range, memory, code);
      }
    }
  };
  // Where they are most likely first: programs may have hundreds of large libraries.
  look_in([](std::string_view name) { return is_c_library(name); });
  look_in([](std::string_view name) { return !is_c_library(name); });
  return code;
}

void restore_number(Registers& resumed, const RemoteMemory& memory) {
  struct {
    unsigned char load;  // mov $number,%eax
    unsigned char number[4];
    char call[2];
  } code;
  constexpr unsigned char kLoad = 0xb8;
  if (resumed.rax != SYS_restart_syscall ||
      !memory.read(resumed.rip - offsetof(decltype(code), call),
                   {reinterpret_cast<char*>(&code), sizeof(code)}) ||
      code.load != kLoad || !kCall.starts_with(std::string_view(code.call, sizeof(code.call)))) {
    return;
  }
  std::uint32_t number = 0;
  std::memcpy(&number, code.number, sizeof(number));
  if (number == SYS_poll || number == SYS_nanosleep || number == SYS_clock_nanosleep ||
      number == SYS_futex) {
    resumed.rax = number;
  }
}

bool is_there(const SystemCallCode& code, const RemoteMemory& memory) {
  const auto has = [&](std::uint64_t address, std::string_view pattern) {
    const auto bytes = memory.load_array<char>(address, pattern.size());
    return address == 0 || (bytes && std::string_view(bytes->data(), bytes->size()) == pattern);
  };
  return code.is_complete() && has(code.call, kCall) && has(code.end_handler, kEndHandler) &&
         has(code.load_number, kLoadNumber);
}

Result<WayBack> WayBack::prepare(const TracedThread& thread, const RemoteMemory& memory,
                                 const std::vector<Mapping>& mappings, const SystemCallCode& code) {
  constexpr std::uint64_t kAlignment = 64;
  constexpr std::uint64_t kLeft = 4U << 10U;  // for signals that come before they are blocked
  if (thread.has_exited()) {
    return Error{Errc::kGone, "the thread has exited", ESRCH};
  }
  TIDEMARK_TRY_ASSIGN(const Registers found, thread.registers());
  if (std::string why = why_no_system_call(thread, found);
      !why.empty() || !is_there(code, memory)) {
    return Error{Errc::kUnsupported,
                 why.empty() ? "its process has no code to make a system call with" : why};
  }
  TIDEMARK_TRY_ASSIGN(const std::uint64_t mask, thread.signal_mask());
  TIDEMARK_TRY_ASSIGN(auto state, thread.extended_state());
  const std::vector<char> extended = for_signal_frame(std::move(state), state_parts());
  const Mapping* const stack = find_safe_stack(found, mappings, memory);
  const std::uint64_t needed =
      kRedZone + extended.size() + 2 * (sizeof(Frame) + kAlignment) + kLeft;
  if (extended.empty() || stack == nullptr || found.rsp - stack->range.begin < needed) {
    return Error{Errc::kUnsupported, extended.empty()   ? "the processor has no extended state"
                                     : stack == nullptr ? "it is not on its own stack"
                                                        : "its stack has no room"};
  }
  const std::uint64_t extended_at = round_down(found.rsp - kRedZone - extended.size(), kAlignment);
  const std::uint64_t back_at = round_down(extended_at - sizeof(Frame), kAlignment);
  const std::uint64_t exit_at = round_down(back_at - sizeof(Frame), kAlignment);
  Registers resumed = registers_to_resume(found);
  const bool is_exact = resumed.rax != SYS_restart_syscall &&
                        static_cast<std::int64_t>(found.rax) != -kRestartByBlock;
  restore_number(resumed, memory);
  Registers exiting = found;
  exiting.rip = code.call;
  exiting.rax = SYS_exit_group;
  exiting.rdi = 0;
  exiting.rsp = exit_at;
  const Frame back = make_frame(code, signal_context(resumed, mask, extended_at));
  const Frame exit = make_frame(code, signal_context(exiting, kAllSignals, 0));
  WayBack way(memory);
  way.is_exact_ = is_exact;
  way.stack_ = stack_pointer_of(code, back_at);
  way.exit_stack_ = stack_pointer_of(code, exit_at);
  way.begin_ = exit_at;
  way.bytes_.resize(extended_at + extended.size() - exit_at);
  std::memcpy(way.bytes_.data(), &exit, sizeof(exit));
  std::memcpy(way.bytes_.data() + (back_at - exit_at), &back, sizeof(back));
  std::memcpy(way.bytes_.data() + (extended_at - exit_at), extended.data(), extended.size());
  return way;
}

Status WayBack::lay() {
  auto before = memory_->load_array<char>(begin_, bytes_.size());
  if (!before) {
    return Error{Errc::kUnsupported, "the stack of a thread cannot be read"};
  }
  before_ = *std::move(before);
  return memory_->write(begin_, bytes_);
}

Status WayBack::take_up() const { return memory_->write(begin_, before_); }

Result<std::int64_t> make_system_call(TracedThread& thread, const SystemCall& call, WayBack& back,
                                      Deadline deadline,
                                      const std::function<void(pid_t)>& on_new_process) {
  return make(thread, call, &back, deadline, on_new_process);
}

Result<std::int64_t> make_system_call_for_good(TracedThread& thread, const SystemCall& call,
                                               Deadline deadline) {
  return make(thread, call, nullptr, deadline, {});
}

}  // namespace tidemark::inject
