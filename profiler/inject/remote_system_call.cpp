// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_system_call.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace tidemark::inject {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kInstruction = "\x0f\x05"sv;
constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};

std::uint64_t find_in(const AddressRange& range, const RemoteMemory& memory) {
  constexpr std::uint64_t kMostBytes = 4U << 20U;
  const auto code =
      memory.load_array<char>(range.begin, std::min(range.end - range.begin, kMostBytes));
  const std::size_t at = code ? std::string_view(code->data(), code->size()).find(kInstruction)
                              : std::string_view::npos;
  return at == std::string_view::npos ? 0 : range.begin + at;
}

// The kernel makes the call again where it has one of these as its result (include/linux/errno.h);
// user space never sees them.
bool is_to_be_made_again(std::int64_t result) { return result <= -512 && result >= -516; }

Registers registers_for(const SystemCall& call, const Registers& found) {
  Registers registers = found;
  registers.rip = call.instruction;
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

}  // namespace

bool is_system_call(std::uint64_t address, const RemoteMemory& memory) {
  const auto bytes = memory.load<std::array<char, kInstruction.size()>>(address);
  return bytes && std::string_view(bytes->data(), bytes->size()) == kInstruction;
}

std::uint64_t find_system_call(const std::vector<Mapping>& mappings, const RemoteMemory& memory) {
  const auto find = [&](bool in_kernel_code) {
    std::uint64_t found = 0;
    for (auto each = mappings.begin(); each != mappings.end() && found == 0; ++each) {
      if (each->is_executable && each->name != "[vsyscall]" &&
          (each->name == "[vdso]") == in_kernel_code) {
        found = find_in(each->range, memory);
      }
    }
    return found;
  };
  const std::uint64_t in_kernel_code = find(true);
  return in_kernel_code != 0 ? in_kernel_code : find(false);
}

std::string why_no_system_call(const TracedThread& thread) {
  constexpr std::uint64_t kCodeOf64Bit = 0x33;
  if (thread.has_exited()) {
    return "it has exited";
  }
  const auto registers = thread.registers();
  if (!registers) {
    return registers.error().what;
  }
  if (registers->cs != kCodeOf64Bit) {
    return "it runs 32-bit code";
  }
  if (thread.is_in_restartable_sequence(*registers)) {
    return "it is in a restartable sequence";
  }
  return "";
}

Result<std::int64_t> make_system_call(TracedThread& thread, const SystemCall& call,
                                      Deadline deadline,
                                      const std::function<void(pid_t)>& on_new_process) {
  TIDEMARK_TRY_ASSIGN(const Registers found, thread.registers());
  TIDEMARK_TRY_ASSIGN(const std::uint64_t mask, thread.signal_mask());
  TIDEMARK_TRY(thread.set_signal_mask(kAllSignals));
  Result<std::int64_t> made = std::int64_t{0};
  do {
    made = make_once(thread, registers_for(call, found), deadline, on_new_process);
  } while (made && is_to_be_made_again(*made));
  if (!made && (thread.has_exited() || made.error().sys_errno == ETIMEDOUT)) {
    return made;  // what runs, or does not any more, cannot be put back
  }
  Status restored = thread.set_registers(found);
  const Status unmasked = thread.set_signal_mask(mask);
  restored = restored ? unmasked : restored;
  restored = restored && made ? stop_as_found(thread, deadline) : restored;
  return restored ? made : Result<std::int64_t>(restored.error());
}

}  // namespace tidemark::inject
