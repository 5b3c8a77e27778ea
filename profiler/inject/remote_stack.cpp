// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_stack.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::inject {

struct RemoteStack::State {
  ~State() { dwfl_end(dwfl); }

  Dwfl* dwfl = nullptr;
  pid_t pid = 0;
  const RemoteMemory* memory = nullptr;
  const AddressSpace* space = nullptr;
  Registers registers = {};
  std::vector<std::uint64_t> pcs;
};

namespace {

using State = RemoteStack::State;

constexpr std::size_t kMostFrames = 4096;

// The file that is mapped, also if it was deleted since (by an upgrade of its package), which only
// root may open so. Else by its name, which may be another file's by now: never a device or a link.
Result<Fd> open_mapped(const State& state, const std::string& name, std::uint64_t base) {
  if (const Mapping* const mapping = mapping_at(state.space->mappings, base)) {
    auto file = open_file(fmt::format("/proc/{}/map_files/{:x}-{:x}", state.pid,
                                      mapping->range.begin, mapping->range.end),
                          O_RDONLY | O_NONBLOCK);
    if (file) {
      return file;
    }
  }
  TIDEMARK_TRY_ASSIGN(const auto place, open_file(fmt::format("/proc/{}/root{}", state.pid, name),
                                                  O_PATH | O_NOFOLLOW));
  struct stat status {};
  if (::fstat(place.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{Errc::kPermission, "the file was replaced"};
  }
  return open_file(fmt::format("/proc/self/fd/{}", place.get()), O_RDONLY);
}

int open_module(Dwfl_Module* /*module*/, void** user_data, const char* name, Dwarf_Addr base,
                char** /*file_name*/, Elf** /*elf*/) {
  auto file = open_mapped(*static_cast<const State*>(*user_data), name, base);
  return file ? file->release() : -1;
}

int no_debug_information(Dwfl_Module* /*module*/, void** /*user_data*/, const char* /*name*/,
                         Dwarf_Addr /*base*/, const char* /*file*/, const char* /*link*/,
                         GElf_Word /*crc*/, char** /*found*/) {
  return -1;
}

const Dwfl_Callbacks kModuleCallbacks = {open_module, no_debug_information, nullptr, nullptr};

pid_t only_thread(Dwfl* /*dwfl*/, void* argument, void** thread) {
  if (*thread != nullptr) {
    return 0;
  }
  *thread = argument;
  return static_cast<const State*>(argument)->pid;
}

bool read_word(Dwfl* /*dwfl*/, Dwarf_Addr address, Dwarf_Word* value, void* argument) {
  const auto* const state = static_cast<const State*>(argument);
  const auto word = state->memory->load<std::uint64_t>(address);
  *value = word.value_or(0);
  return word.has_value();
}

// In the order of the DWARF numbers of x86-64.
bool give_registers(Dwfl_Thread* thread, void* argument) {
  const Registers& from = static_cast<const State*>(argument)->registers;
  const std::array<Dwarf_Word, 17> values = {
      from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi, from.rbp, from.rsp, from.r8,
      from.r9,  from.r10, from.r11, from.r12, from.r13, from.r14, from.r15, from.rip};
  return dwfl_thread_state_registers(thread, 0, values.size(), values.data());
}

const Dwfl_Thread_Callbacks kThreadCallbacks = {only_thread,    nullptr, read_word,
                                                give_registers, nullptr, nullptr};

int add_frame(Dwfl_Frame* frame, void* argument) {
  auto* const state = static_cast<State*>(argument);
  Dwarf_Addr pc = 0;
  if (state->pcs.size() >= kMostFrames || !dwfl_frame_pc(frame, &pc, nullptr)) {
    return DWARF_CB_ABORT;
  }
  state->pcs.push_back(pc);
  return DWARF_CB_OK;
}

// By its name (libjemalloc.so.2, libtcmalloc_minimal.so.4), which may have a malloc of another
// name, or by what it exports.
bool is_allocator(const CallSafety& safety, const RemoteModule& module) {
  return basename_of(module.path).find("malloc") != std::string_view::npos ||
         std::find(safety.allocators.begin(), safety.allocators.end(), &module) !=
             safety.allocators.end();
}

// Calls that wait and hold no lock of libc meanwhile.
bool waits_without_lock(std::string_view function) {
  constexpr std::array<std::string_view, 43> kFunctions{"poll",
                                                        "__poll",
                                                        "ppoll",
                                                        "select",
                                                        "__select",
                                                        "pselect",
                                                        "epoll_wait",
                                                        "epoll_pwait",
                                                        "nanosleep",
                                                        "__nanosleep",
                                                        "clock_nanosleep",
                                                        "usleep",
                                                        "sleep",
                                                        "pause",
                                                        "read",
                                                        "__read",
                                                        "recv",
                                                        "recvfrom",
                                                        "recvmsg",
                                                        "accept",
                                                        "accept4",
                                                        "wait4",
                                                        "waitpid",
                                                        "__waitpid",
                                                        "waitid",
                                                        "pthread_cond_wait",
                                                        "pthread_cond_timedwait",
                                                        "pthread_cond_clockwait",
                                                        "sem_wait",
                                                        "sem_timedwait",
                                                        "sem_clockwait",
                                                        "sigwaitinfo",
                                                        "sigtimedwait",
                                                        "syscall",
                                                        "write",
                                                        "__write",
                                                        "writev",
                                                        "send",
                                                        "sendto",
                                                        "sendmsg",
                                                        "connect",
                                                        "sched_yield",
                                                        "__sched_yield"};
  return std::find(kFunctions.begin(), kFunctions.end(), function) != kFunctions.end();
}

// The number behind an instruction that is relative to the address `from`.
std::uint64_t relative_to(std::uint64_t from, const unsigned char* number) {
  std::int32_t distance = 0;
  std::memcpy(&distance, number, sizeof(distance));
  return from + static_cast<std::uint64_t>(std::int64_t{distance});
}

// Where a stub of the PLT leads; another function is what it is.
std::uint64_t behind_stub(std::uint64_t function, const RemoteMemory& memory) {
  constexpr std::size_t kJumpBytes = 6;  // jmp *number(%rip)
  using Code = std::array<unsigned char, 4 + 1 + kJumpBytes>;
  const Code code = memory.load<Code>(function).value_or(Code{});
  std::size_t at = code[0] == 0xf3 && code[1] == 0x0f ? 4 : 0;  // endbr64
  at += code[at] == 0xf2 ? std::size_t{1} : 0;                  // bnd
  if (code[at] != 0xff || code[at + 1] != 0x25) {
    return function;
  }
  return memory.load<std::uint64_t>(relative_to(function + at + kJumpBytes, &code[at + 2]))
      .value_or(0);
}

// The function whose call returns to an address, by the instruction before that; 0: not known.
std::uint64_t function_called_before(std::uint64_t address, const RemoteMemory& memory) {
  using Code = std::array<unsigned char, 6>;
  const Code code = memory.load<Code>(address - sizeof(Code)).value_or(Code{});
  if (code[0] == 0xff && code[1] == 0x15) {  // call *number(%rip)
    return memory.load<std::uint64_t>(relative_to(address, &code[2])).value_or(0);
  }
  return code[1] == 0xe8 ? behind_stub(relative_to(address, &code[2]), memory) : 0;
}

}  // namespace

RemoteStack::RemoteStack(std::unique_ptr<State> state) : state_(std::move(state)) {}
RemoteStack::~RemoteStack() = default;
RemoteStack::RemoteStack(RemoteStack&&) noexcept = default;

Result<RemoteStack> RemoteStack::open(pid_t pid, const RemoteMemory& memory,
                                      const AddressSpace& space) {
  auto state = std::make_unique<State>();
  state->pid = pid;
  state->memory = &memory;
  state->space = &space;
  state->dwfl = dwfl_begin(&kModuleCallbacks);
  const auto failed = [](const char* what) {
    return Error{Errc::kUnsupported, fmt::format("{}: {}", what, dwfl_errmsg(-1))};
  };
  if (state->dwfl == nullptr) {
    return failed("cannot walk stacks");
  }
  dwfl_report_begin(state->dwfl);
  for (const RemoteModule& module : space.modules) {
    Dwfl_Module* const added =
        dwfl_report_module(state->dwfl, module.path.c_str(), module.range.begin, module.range.end);
    void** user_data = nullptr;
    if (added != nullptr) {
      dwfl_module_info(added, &user_data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
      *user_data = state.get();
    }
  }
  if (dwfl_report_end(state->dwfl, nullptr, nullptr) != 0 ||
      !dwfl_attach_state(state->dwfl, nullptr, pid, &kThreadCallbacks, state.get())) {
    return failed("cannot walk the stacks of the process");
  }
  return RemoteStack(std::move(state));
}

Result<std::vector<std::uint64_t>> RemoteStack::walk(const Registers& registers) {
  state_->registers = registers;
  state_->pcs.clear();
  if (dwfl_getthread_frames(state_->dwfl, state_->pid, add_frame, state_.get()) != 0) {
    return Error{Errc::kUnsupported,
                 fmt::format("its stack could not be walked to the end ({})", dwfl_errmsg(-1))};
  }
  return state_->pcs;
}

std::string why_unsafe(const CallSafety& safety, const std::vector<std::uint64_t>& stack,
                       const Registers& registers) {
  const auto module_of = [&](std::size_t frame) {
    // A return address may be the first byte behind the function, or the module, that called.
    return safety.space->module_at(stack[frame] - (frame == 0 ? 0 : 1));
  };
  std::size_t end = stack.size();
  // The first thread begins in the program, which calls libc, which calls main.
  if (end > 1 && module_of(end - 1) != safety.libc && module_of(end - 2) == safety.libc) {
    --end;
  }
  while (end > 0 && module_of(end - 1) == safety.libc) {
    --end;  // these start the thread
  }
  std::size_t begin = 0;
  while (begin < end && module_of(begin) == safety.libc) {
    ++begin;
  }
  if (end == 0) {
    return "it has no frame outside libc";
  }
  if (begin > 0) {
    // By the function that the program called: what it calls in turn has no name, and may have
    // taken its frame (sem_wait).
    const std::uint64_t pc = stack[begin - 1] - (begin == 1 ? 0 : 1);
    std::string_view function = symbol_at(safety.libc_symbols, pc);
    if (function.empty() && begin < end && safety.memory != nullptr) {
      function =
          symbol_at(safety.libc_symbols, function_called_before(stack[begin], *safety.memory));
    }
    const bool is_in_call = static_cast<std::int64_t>(registers.orig_rax) >= 0;
    if (!is_in_call || !waits_without_lock(function)) {
      return fmt::format("it is in {} of libc", function.empty() ? "a function" : function);
    }
  }
  for (std::size_t i = begin; i < end; ++i) {
    const RemoteModule* const module = module_of(i);
    if (module == nullptr) {
      return "it is in code that is in no file";
    }
    if (module == safety.linker || module == safety.libc || is_allocator(safety, *module)) {
      return fmt::format("it is in a call through {}", basename_of(module->path));
    }
  }
  return "";
}

}  // namespace tidemark::inject
