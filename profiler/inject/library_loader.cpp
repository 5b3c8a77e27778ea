// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/library_loader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "profiler/inject/remote_call.h"
#include "profiler/inject/remote_stack.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {
namespace {

// Loads the library, with calls in one thread that may make them.
class Loader {
 public:
  Loader(pid_t pid, const RemoteMemory& memory, const RemoteLibrary& library,
         const LoadOptions& options, LoadFigures& figures)
      : pid_(pid),
        memory_(memory),
        library_(library),
        options_(options),
        figures_(figures),
        deadline_(Deadline::in(options.timeout_ns)) {}

  // What the function has returned.
  Result<std::uint64_t> load() {
    std::string reason = "it waits in a system call";
    while (true) {
      const std::vector<pid_t> threads = threads_of(pid_);
      if (threads.empty()) {
        return Error{Errc::kGone, fmt::format("process {} has exited", pid_)};
      }
      if (rounds_ % kRoundsOfOneLook == 0) {
        TIDEMARK_TRY(look_at_process());
      }
      for (const pid_t tid : threads) {
        Result<bool> is_done = false;
        in_tracing_thread(pid_, [&] { is_done = try_thread(tid, reason); });
        if (!is_done || *is_done) {
          return is_done ? Result<std::uint64_t>(answer_) : is_done.error();
        }
        if (options_.is_cancelled()) {
          return Error{Errc::kIo, "attaching was interrupted", EINTR};
        }
      }
      if (deadline_.has_passed()) {
        return Error{Errc::kUnsupported,
                     fmt::format("no thread of process {} came to a place where it may load a "
                                 "library; the last one tried: {}",
                                 pid_, reason),
                     EAGAIN};
      }
      ++rounds_;
      // Not in step with what the process does.
      std::this_thread::sleep_for(std::chrono::microseconds(300 + rounds_ * 377 % 5000));
    }
  }

 private:
  // Libraries are loaded while it goes on.
  static constexpr std::uint64_t kRoundsOfOneLook = 100;

  Status look_at_process() {
    stack_.reset();
    TIDEMARK_TRY_ASSIGN(space_, read_address_space(pid_, memory_));
    TIDEMARK_TRY(find_libc());
    TIDEMARK_TRY_ASSIGN(auto stack, RemoteStack::open(pid_, memory_, space_));
    stack_.emplace(std::move(stack));
    ending_ = find_call_ending(space_, memory_);
    return ok();
  }

  Status find_libc() {
    safety_.space = &space_;
    safety_.memory = &memory_;
    safety_.libc = space_.find("libc.so.6");
    safety_.linker = space_.find("ld-linux");
    if (safety_.libc == nullptr || safety_.linker == nullptr) {
      return Error{Errc::kUnsupported, fmt::format("process {} does not use glibc", pid_)};
    }
    if (std::count_if(space_.modules.begin(), space_.modules.end(), [](const RemoteModule& each) {
          return basename_of(each.path).starts_with("libc.so.6");
        }) > 1) {
      return Error{Errc::kUnsupported,
                   fmt::format("process {} has more than one C library (dlmopen)", pid_)};
    }
    safety_.libc_symbols = exported_symbols(*safety_.libc, memory_);
    if (function("dlopen") == 0) {
      return Error{Errc::kUnsupported, fmt::format("process {} has a glibc before 2.34", pid_)};
    }
    safety_.allocators.clear();
    for (const RemoteModule& module : space_.modules) {
      if (&module != safety_.libc && &module != safety_.linker &&
          find_exported(module, memory_, "malloc") != 0) {
        safety_.allocators.push_back(&module);
      }
    }
    if (!safety_.allocators.empty() && safety_.allocators.front() == &space_.modules.front()) {
      return Error{Errc::kUnsupported, "its program has an allocator of its own linked into it"};
    }
    return ok();
  }

  // False: not at a good place; `reason` says why.
  Result<bool> try_thread(pid_t tid, std::string& reason) {
    if (!is_round_for_waiting() && waits_in_system_call(pid_, tid)) {
      return false;
    }
    ++figures_.attempts;
    auto thread = TracedThread::seize(tid);
    if (!thread) {
      if (thread.error().sys_errno == EPERM && tid == pid_) {
        return thread.error();
      }
      return false;
    }
    std::optional<StopWatch> watch(std::in_place, figures_.thread_stopped_ns);
    constexpr std::int64_t kLongestNs = kNsPerSecond / 5;
    if (const Status stopped = thread->stop(deadline_.or_in(kLongestNs)); !stopped) {
      reason = deadline_.has_passed() ? reason : stopped.error().what;
      return false;
    }
    TIDEMARK_TRY_ASSIGN(const auto registers, thread->registers());
    if (rounds_ % kRoundsOfOneLook == 0) {
      // Unwind tables are read from files, which takes long: not while it is stopped.
      TIDEMARK_TRY(thread->resume());
      watch.reset();
      (void)stack_->walk(registers);
      return false;
    }
    if (static_cast<std::int64_t>(registers.orig_rax) >= 0 && !is_round_for_waiting()) {
      return false;  // it has begun to wait
    }
    reason = why_not(*thread, registers);
    if (!reason.empty()) {
      return false;
    }
    TIDEMARK_TRY_ASSIGN(const auto mappings, read_mappings(pid_));
    auto call = RemoteCall::prepare(*thread, memory_, mappings, ending_);
    if (!call) {
      reason = call.error().what;
      return false;
    }
    const Status loaded = load_by(*call);
    TIDEMARK_TRY(call->let_signals_in());
    if (!loaded) {
      return loaded.error();
    }
    return true;
  }

  // A timeout begins anew at each stop: threads that wait are stopped in the first round, to get to
  // know their stacks, and then in the 10th, 20th, 40th and so on.
  bool is_round_for_waiting() const {
    constexpr std::uint64_t kFirst = 10;
    return rounds_ == 0 || (rounds_ % kFirst == 0 && std::has_single_bit(rounds_ / kFirst));
  }

  std::string why_not(const TracedThread& thread, const Registers& registers) {
    if (thread.is_in_group_stop()) {
      return "it is stopped (SIGSTOP)";
    }
    if (thread.is_in_restartable_sequence(registers)) {
      return "it is in a restartable sequence";
    }
    const auto frames = stack_->walk(registers);
    return frames ? why_unsafe(safety_, *frames, registers) : frames.error().what;
  }

  // The thread may be about to look at its errno, which calls change, above all those that fail.
  Status load_by(RemoteCall& call) {
    TIDEMARK_TRY_ASSIGN(errno_at_, call.call(function("__errno_location"), {}, call_deadline()));
    const auto found = memory_.load<int>(errno_at_);
    Status loaded = load_and_start(call);
    if (found) {
      (void)memory_.write(errno_at_, {reinterpret_cast<const char*>(&*found), sizeof(*found)});
    }
    return loaded;
  }

  Status load_and_start(RemoteCall& call) {
    TIDEMARK_TRY_ASSIGN(const RemoteModule module, module_in_process(call));
    const std::uint64_t function = find_exported(module, memory_, options_.function);
    if (function == 0) {
      return Error{Errc::kUnsupported, fmt::format("{} is not this version's {}",
                                                   escape_text(module.path), library_.name)};
    }
    TIDEMARK_TRY_ASSIGN(const std::uint64_t argument, call.put_text(options_.argument));
    TIDEMARK_TRY_ASSIGN(answer_, call.call(function, {argument}, call_deadline()));
    return ok();
  }

  // Loaded at most once: as a memory file each would be another library to the dynamic linker.
  Result<RemoteModule> module_in_process(RemoteCall& call) {
    TIDEMARK_TRY_ASSIGN(const auto before, read_address_space(pid_, memory_));
    if (const RemoteModule* const loaded = find_library(before, library_)) {
      return *loaded;
    }
    TIDEMARK_TRY_ASSIGN(const std::uint64_t handle, open_library(call));
    const auto bias = memory_.load<std::uint64_t>(handle);  // struct link_map begins with it
    TIDEMARK_TRY_ASSIGN(const auto after, read_address_space(pid_, memory_));
    const auto module =
        std::find_if(after.modules.begin(), after.modules.end(),
                     [&](const RemoteModule& each) { return bias && each.bias == *bias; });
    if (module == after.modules.end()) {
      return Error{Errc::kGone, fmt::format("process {} has exited", pid_)};
    }
    return *module;
  }

  // By its name where the process sees it. It may be on a file system that nothing may be run from:
  // then, and in containers, as a memory file.
  Result<std::uint64_t> open_library(RemoteCall& call) {
    if (sees_file(pid_, options_.path)) {
      if (auto handle = open_by_name(call, options_.path); !handle || *handle != 0) {
        return handle;
      }
    }
    TIDEMARK_TRY_ASSIGN(const std::uint64_t file, make_memory_file(call));
    auto handle = open_by_name(call, fmt::format("{}/{}", library_.descriptors, file));
    (void)call.call(function("close"), {file}, call_deadline());
    if (!handle || *handle != 0) {
      return handle;
    }
    const auto text = call.call(function("dlerror"), {}, call_deadline());
    constexpr std::size_t kMostBytes = 512;
    return Error{Errc::kUnsupported,
                 fmt::format("it cannot load the {}: {}", library_.name,
                             text ? escape_text(memory_.text(*text, kMostBytes)) : "?")};
  }

  Result<std::uint64_t> open_by_name(RemoteCall& call, const std::string& path) {
    TIDEMARK_TRY_ASSIGN(const std::uint64_t name, call.put_text(path));
    return call.call(function("dlopen"), {name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE},
                     call_deadline());
  }

  // For a process that cannot see the library: in a container, or of another user.
  Result<std::uint64_t> make_memory_file(RemoteCall& call) {
    constexpr std::uint64_t kCloseOnExec = 1;
    constexpr std::size_t kMostBytes = 64U << 20U;
    TIDEMARK_TRY_ASSIGN(const auto image, read_file(options_.path, kMostBytes));
    TIDEMARK_TRY_ASSIGN(const std::uint64_t name, call.put_text(std::string(library_.memory_file)));
    TIDEMARK_TRY_ASSIGN(const std::uint64_t fd,
                        call.call(function("memfd_create"), {name, kCloseOnExec}, call_deadline()));
    if (static_cast<std::int32_t>(fd) < 0) {
      return system_error("the process cannot create a memory file",
                          memory_.load<int>(errno_at_).value_or(0));
    }
    const auto file =
        open_file(fmt::format("/proc/{}/fd/{}", pid_, static_cast<std::uint32_t>(fd)), O_WRONLY);
    const Status written = file ? write_all(file->get(), image) : Status(file.error());
    if (!written) {
      (void)call.call(function("close"), {fd}, call_deadline());
      return written.error();
    }
    return fd & 0xffff'ffffU;
  }

  // What was begun is not left half-way because the search for a thread took long.
  Deadline call_deadline() const {
    constexpr std::int64_t kLeastNs = 3 * kNsPerSecond;
    return {std::max(deadline_.at_ns, Deadline::in(kLeastNs).at_ns)};
  }

  std::uint64_t function(std::string_view name) const {
    return address_of(safety_.libc_symbols, name);
  }

  const pid_t pid_;
  const RemoteMemory& memory_;
  const RemoteLibrary& library_;
  const LoadOptions& options_;
  LoadFigures& figures_;
  const Deadline deadline_;
  AddressSpace space_;
  CallSafety safety_;
  CallEnding ending_;
  std::optional<RemoteStack> stack_;
  std::uint64_t errno_at_ = 0;  // of the thread that calls
  std::uint64_t rounds_ = 0;
  std::uint64_t answer_ = 0;
};

}  // namespace

const RemoteModule* find_library(const AddressSpace& space, const RemoteLibrary& library) {
  const auto found =
      std::find_if(space.modules.begin(), space.modules.end(), [&](const RemoteModule& module) {
        const std::string_view name = basename_of(module.path);
        return name.starts_with(library.file) ||
               name.starts_with(fmt::format("memfd:{}", library.memory_file));
      });
  return found == space.modules.end() ? nullptr : &*found;
}

bool sees_file(pid_t pid, const std::string& path) {
  struct stat here {};
  struct stat there {};
  struct stat process {};
  return ::stat(path.c_str(), &here) == 0 &&
         ::stat(fmt::format("/proc/{}/root{}", pid, path).c_str(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino &&
         ::stat(fmt::format("/proc/{}", pid).c_str(), &process) == 0 &&
         process.st_uid == ::geteuid();
}

Result<std::uint64_t> load_and_call(pid_t pid, const RemoteMemory& memory,
                                    const RemoteLibrary& library, const LoadOptions& options,
                                    LoadFigures& figures) {
  return Loader(pid, memory, library, options, figures).load();
}

}  // namespace tidemark::inject
