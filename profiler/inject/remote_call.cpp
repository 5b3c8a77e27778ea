// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_call.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "profiler/inject/extended_state.h"
#include "profiler/inject/remote_system_call.h"
#include "profiler/inject/signal_frame.h"

namespace tidemark::inject {
namespace {

constexpr std::uint64_t kRoomForFrames = 32U << 10U;
constexpr std::uint64_t kRoomForCalls = 128U << 10U;  // of a stack that does not grow

struct SignalFrame {
  std::uint64_t store_result;  // where the function returns to,
  std::uint64_t old_rbx;       // what that takes off the stack,
  std::uint64_t end_handler;   // and where it returns to in turn
  SignalContext context;
  std::uint64_t signal_information[16];
  std::uint64_t result;  // ours
};

constexpr std::uint64_t round_down(std::uint64_t address, std::uint64_t to) {
  return address / to * to;
}

std::uint64_t find_bytes(const AddressRange& range, std::string_view pattern,
                         const RemoteMemory& memory) {
  constexpr std::uint64_t kMostBytes = 64U << 20U;
  const auto code =
      memory.load_array<char>(range.begin, std::min(range.end - range.begin, kMostBytes));
  const std::size_t at =
      code ? std::string_view(code->data(), code->size()).find(pattern) : std::string_view::npos;
  return at == std::string_view::npos ? 0 : range.begin + at;
}

// All but those that the thread raises by what it does, which end the call.
constexpr std::uint64_t blocked_signals() {
  std::uint64_t mask = ~std::uint64_t{0};
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    mask &= ~(std::uint64_t{1} << static_cast<unsigned>(signal - 1));
  }
  return mask;
}

}  // namespace

CallEnding find_call_ending(const AddressSpace& space, const RemoteMemory& memory) {
  using namespace std::string_view_literals;
  CallEnding ending;
  const RemoteModule* const libc = space.find("libc.so.6");
  if (libc == nullptr) {
    return ending;
  }
  const auto look_in = [&](const RemoteModule& module, std::string_view pattern,
                           std::uint64_t& found) {
    for (auto code = module.code.begin(); code != module.code.end() && found == 0; ++code) {
      found = find_bytes(*code, pattern, memory);
    }
  };
  constexpr std::string_view kStoreResult = "\x48\x89\x03\x5b\xc3"sv;
  look_in(*libc, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"sv, ending.end_handler);
  look_in(*libc, kStoreResult, ending.store_result);
  for (const RemoteModule& module : space.modules) {
    look_in(module, kStoreResult, ending.store_result);
  }
  return ending;
}

const Mapping* find_own_stack(const Registers& registers, const std::vector<Mapping>& mappings) {
  const Mapping* const stack = mapping_at(mappings, registers.rsp);
  if (stack == nullptr || !stack->is_writable) {
    return nullptr;
  }
  const bool has_thread_data =
      stack->range.holds(registers.fs_base) && registers.rsp < registers.fs_base;
  return stack->name == "[stack]" || has_thread_data ? stack : nullptr;
}

std::optional<AddressRange> own_stack(const Registers& registers,
                                      const std::vector<Mapping>& mappings) {
  const Mapping* const stack = find_own_stack(registers, mappings);
  if (stack == nullptr) {
    return std::nullopt;
  }
  const std::uint64_t room = registers.rsp - stack->range.begin;
  return room < (stack->name == "[stack]" ? kRoomForFrames : kRoomForCalls)
             ? std::nullopt
             : std::optional(stack->range);
}

Result<RemoteCall> RemoteCall::prepare(TracedThread& thread, const RemoteMemory& memory,
                                       const std::vector<Mapping>& mappings,
                                       const CallEnding& ending) {
  if (ending.store_result == 0 || ending.end_handler == 0) {
    return Error{Errc::kUnsupported, "its C library has no code to return from a call with"};
  }
  RemoteCall call(thread, memory, ending);
  TIDEMARK_TRY_ASSIGN(const auto stopped, thread.registers());
  TIDEMARK_TRY_ASSIGN(auto extended, thread.extended_state());
  TIDEMARK_TRY_ASSIGN(call.mask_, thread.signal_mask());
  call.extended_ = for_signal_frame(std::move(extended), state_parts());
  if (call.extended_.empty()) {
    return Error{Errc::kUnsupported, "the processor has no extended state"};
  }
  const auto stack = own_stack(stopped, mappings);
  if (!stack) {
    return Error{Errc::kUnsupported, "the thread is not on its own stack, or has no room there"};
  }
  call.stopped_ = stopped;
  call.registers_ = registers_to_resume(stopped);
  restore_number(call.registers_, memory);
  if (call.registers_.rip != stopped.rip && call.registers_.rax == SYS_restart_syscall) {
    return Error{Errc::kUnsupported, "it waits in a call that it could not make again"};
  }
  call.top_ = round_down(stopped.rsp - kRedZone, 64);
  call.lowest_ = stack->begin;
  return call;
}

Result<std::uint64_t> RemoteCall::put_text(const std::string& text) {
  const std::uint64_t at = round_down(top_ - text.size() - 1, 64);
  if (text.size() > kRoomForFrames / 2 || at < lowest_) {
    return Error{Errc::kUnsupported, "the thread has too little room on its stack"};
  }
  TIDEMARK_TRY(memory_.write(at, {text.c_str(), text.size() + 1}));
  top_ = at;
  return at;
}

// The frame for the stack at this address, with the extended state behind it.
std::vector<char> RemoteCall::frame_at(std::uint64_t address) const {
  SignalFrame frame = {};
  frame.store_result = ending_.store_result;
  frame.end_handler = ending_.end_handler;
  const std::uint64_t extended = top_ - round_down(extended_.size() + 63, 64);
  frame.context = signal_context(registers_, mask_, extended);
  std::vector<char> image(top_ - address);
  std::memcpy(image.data(), &frame, sizeof(frame));
  std::memcpy(image.data() + (extended - address), extended_.data(), extended_.size());
  return image;
}

// The address of the frame that the call ends with.
Result<std::uint64_t> RemoteCall::begin(std::uint64_t function,
                                        std::initializer_list<std::uint64_t> arguments) {
  constexpr std::uint64_t kDirectionAndTrap = 0x500;
  const std::uint64_t extended = top_ - round_down(extended_.size() + 63, 64);
  // As the compiler expects it behind a call: 8 bytes off a multiple of 16.
  const std::uint64_t frame = round_down(extended - sizeof(SignalFrame), 16) - 8;
  if (frame < lowest_) {
    return Error{Errc::kUnsupported, "the thread has too little room on its stack"};
  }
  TIDEMARK_TRY(memory_.write(frame, frame_at(frame)));
  Registers registers = registers_;
  registers.rip = function;
  registers.rsp = frame;
  registers.rbx = frame + offsetof(SignalFrame, result);
  registers.rax = 0;
  registers.rbp = 0;
  registers.eflags &= ~kDirectionAndTrap;
  const std::array places{&registers.rdi, &registers.rsi, &registers.rdx, &registers.rcx};
  std::size_t next = 0;
  for (const std::uint64_t argument : arguments) {
    *places.at(next++) = argument;
  }
  // In this order: if the tool is killed in between, no signals stay blocked.
  TIDEMARK_TRY(thread_.set_registers(registers));
  if (const Status blocked = thread_.set_signal_mask(blocked_signals()); !blocked) {
    (void)thread_.set_registers(registers_);
    return blocked.error();
  }
  return frame;
}

Result<std::uint64_t> RemoteCall::call(std::uint64_t function,
                                       std::initializer_list<std::uint64_t> arguments,
                                       Deadline deadline) {
  if (has_failed_) {  // the thread may still be in the call before, with locks held
    return Error{Errc::kUnsupported, "the call before it has failed"};
  }
  has_failed_ = true;
  TIDEMARK_TRY_ASSIGN(const std::uint64_t frame, begin(function, arguments));
  TIDEMARK_TRY_ASSIGN(const std::uint64_t result, wait_for_end(frame, deadline));
  has_failed_ = false;
  return result;
}

// After a crash: the thread goes on as if nothing had been. The end of the handler restores all of
// it, also what the call has done to the extended state.
void RemoteCall::abandon(std::uint64_t frame) {
  Registers registers = registers_;
  registers.rip = ending_.end_handler;
  registers.rsp = frame + offsetof(SignalFrame, context);
  (void)thread_.set_registers(registers);
}

Status RemoteCall::let_signals_in() {
  return has_failed_ ? ok() : thread_.interrupt_as_found(stopped_);
}

// What to do about a signal that came during a call: the signal to go on with, or an error, which
// ends the call.
Result<int> RemoteCall::answer(int signal) const {
  TIDEMARK_TRY_ASSIGN(const auto information, thread_.signal_information());
  const bool is_sent = information.si_code <= 0;  // by a process, with kill() and the like
  if (is_sent || (signal == SIGSYS && thread_.catches(signal))) {
    return signal;  // as at any other time
  }
  if (signal == SIGSYS) {  // a filter forbids the system call, and nobody does it instead
    TIDEMARK_TRY_ASSIGN(auto now, thread_.registers());
    now.rax = static_cast<std::uint64_t>(-ENOSYS);
    TIDEMARK_TRY(thread_.set_registers(now));
    return 0;
  }
  return Error{Errc::kIo, fmt::format("the call failed with signal {}", signal)};
}

Result<std::uint64_t> RemoteCall::wait_for_end(std::uint64_t frame, Deadline deadline) {
  bool has_ended = false;
  int signal = 0;
  while (true) {
    TIDEMARK_TRY_ASSIGN(signal, thread_.run_to_system_call(deadline, signal));
    TIDEMARK_TRY_ASSIGN(const auto now, thread_.registers());
    if (signal != 0) {
      const auto answered = answer(signal);
      if (!answered) {
        abandon(frame);
        return answered.error();
      }
      signal = *answered;
      continue;
    }
    if (has_ended) {
      break;  // it has left the call that ends handlers: all is as before
    }
    has_ended =
        now.orig_rax == SYS_rt_sigreturn && now.rsp == frame + offsetof(SignalFrame, context);
  }
  const auto result = memory_.load<std::uint64_t>(frame + offsetof(SignalFrame, result));
  return result ? Result<std::uint64_t>(*result)
                : Result<std::uint64_t>(Error{Errc::kGone, "the process has exited"});
}

}  // namespace tidemark::inject
