// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/attach.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/text.h"
#include "profiler/inject/python_script.h"
#include "profiler/inject/remote_call.h"
#include "profiler/inject/remote_stack.h"

namespace tidemark::inject {
namespace {

constexpr std::string_view kLibrary = "libtidemark_tracer.so";
constexpr std::string_view kMemoryFile = "tidemark_tracer";

bool is_tracer(const RemoteModule& module) {
  const std::string_view name = basename_of(module.path);
  return name.starts_with(kLibrary) || name.starts_with(fmt::format("memfd:{}", kMemoryFile));
}

// Measures how long something stands still.
class StopWatch {
 public:
  explicit StopWatch(std::int64_t& longest_ns)
      : longest_ns_(longest_ns), begun_ns_(SystemClock().monotonic_ns()) {}
  ~StopWatch() { longest_ns_ = std::max(longest_ns_, SystemClock().monotonic_ns() - begun_ns_); }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  std::int64_t& longest_ns_;
  std::int64_t begun_ns_;
};

// Whether the process can open the file by the name that it has here.
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

Status status_of(int attach_result) {
  switch (static_cast<wire::AttachResult>(attach_result)) {
    case wire::AttachResult::kStarted:
      return ok();
    case wire::AttachResult::kAlreadyStarted:
      return Error{Errc::kUnsupported,
                   "the tracer is in it already: somebody else profiles it now, or its trace file "
                   "was removed"};
    case wire::AttachResult::kNoFile:
      return Error{Errc::kNoSpace, "the process could not create its trace file"};
    case wire::AttachResult::kBadRequest:
      break;
  }
  return Error{Errc::kUnsupported, "the tracer did not understand its request"};
}

// As a literal of bytes in Python.
std::string python_bytes(std::string_view text) {
  std::string literal = "b'";
  for (const char letter : text) {
    literal += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
  }
  return literal + "'";
}

// A file that goes when this does.
class ScratchFile {
 public:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}
  ~ScratchFile() { ::unlink(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }
  // Readable for the owner of the folder only.
  Status write(const std::string& text, uid_t owner) const {
    TIDEMARK_TRY_ASSIGN(const auto file,
                        open_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    if (::fchown(file.get(), owner, static_cast<gid_t>(-1)) != 0) {
      return system_error("cannot give a script to the user of the process", errno);
    }
    return write_all(file.get(), text);
  }

 private:
  std::string path_;
};

// Loads the tracer, with calls in one thread that may make them.
class Loader {
 public:
  Loader(pid_t pid, const RemoteMemory& memory, const AttachOptions& options,
         AttachFigures& figures)
      : pid_(pid),
        memory_(memory),
        options_(options),
        figures_(figures),
        deadline_(Deadline::in(options.timeout_ns)) {}

  Status load() {
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
          return is_done ? ok() : Status(is_done.error());
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
    TIDEMARK_TRY_ASSIGN(const RemoteModule tracer, tracer_in_process(call));
    const std::uint64_t start = find_exported(tracer, memory_, wire::kAttachFunction);
    if (start == 0) {
      return Error{Errc::kUnsupported,
                   fmt::format("{} is not this version's tracer", escape_text(tracer.path))};
    }
    TIDEMARK_TRY_ASSIGN(const std::uint64_t request, call.put_text(options_.request));
    TIDEMARK_TRY_ASSIGN(const std::uint64_t result, call.call(start, {request}, call_deadline()));
    return status_of(static_cast<int>(result));
  }

  // Loaded at most once: as a memory file each would be another library to the dynamic linker.
  Result<RemoteModule> tracer_in_process(RemoteCall& call) {
    TIDEMARK_TRY_ASSIGN(const auto before, read_address_space(pid_, memory_));
    const auto loaded = std::find_if(before.modules.begin(), before.modules.end(), is_tracer);
    if (loaded != before.modules.end()) {
      return *loaded;
    }
    TIDEMARK_TRY_ASSIGN(const std::uint64_t handle, open_library(call));
    const auto bias = memory_.load<std::uint64_t>(handle);  // struct link_map begins with it
    TIDEMARK_TRY_ASSIGN(const auto after, read_address_space(pid_, memory_));
    const auto tracer =
        std::find_if(after.modules.begin(), after.modules.end(),
                     [&](const RemoteModule& each) { return bias && each.bias == *bias; });
    if (tracer == after.modules.end()) {
      return Error{Errc::kGone, fmt::format("process {} has exited", pid_)};
    }
    return *tracer;
  }

  // By its name where the process sees it. It may be on a file system that nothing may be run from:
  // then, and in containers, as a memory file.
  Result<std::uint64_t> open_library(RemoteCall& call) {
    if (sees_file(pid_, options_.library)) {
      if (auto handle = open_by_name(call, options_.library); !handle || *handle != 0) {
        return handle;
      }
    }
    TIDEMARK_TRY_ASSIGN(const std::uint64_t file, make_memory_file(call));
    // Spelled as nobody else does: a library that was loaded by the same name would be ours.
    auto handle = open_by_name(call, fmt::format("/proc/self/./fd/{}", file));
    (void)call.call(function("close"), {file}, call_deadline());
    if (!handle || *handle != 0) {
      return handle;
    }
    const auto text = call.call(function("dlerror"), {}, call_deadline());
    constexpr std::size_t kMostBytes = 512;
    return Error{Errc::kUnsupported,
                 fmt::format("it cannot load the tracer: {}",
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
    TIDEMARK_TRY_ASSIGN(const auto image, read_file(options_.library, kMostBytes));
    TIDEMARK_TRY_ASSIGN(const std::uint64_t name, call.put_text(std::string(kMemoryFile)));
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
  const AttachOptions& options_;
  AttachFigures& figures_;
  const Deadline deadline_;
  AddressSpace space_;
  CallSafety safety_;
  CallEnding ending_;
  std::optional<RemoteStack> stack_;
  std::uint64_t errno_at_ = 0;  // of the thread that calls
  std::uint64_t rounds_ = 0;
};

}  // namespace

Result<Attachment> Attachment::attach(pid_t pid, const AttachOptions& options) {
  TIDEMARK_TRY(check_target(pid));
  TIDEMARK_TRY_ASSIGN(auto memory, RemoteMemory::open(pid));
  Attachment attachment(pid, std::move(memory));
  const Status loaded = Loader(pid, attachment.memory_, options, attachment.figures_).load();
  if (!loaded) {
    if (loaded.error().sys_errno != EAGAIN || options.folder.empty()) {
      return loaded.error();
    }
    attachment.figures_.detour = loaded.error().what;
    if (const Status asked = attachment.load_by_python(options); !asked) {
      return Error{asked.error().code,
                   fmt::format("{}; {}", loaded.error().what, asked.error().what)};
    }
  }
  TIDEMARK_TRY_ASSIGN(const auto space, read_address_space(pid, attachment.memory_));
  TIDEMARK_TRY(attachment.find_functions(space));
  return attachment;
}

// Its interpreter loads the library as any program in Python could.
Status Attachment::load_by_python(const AttachOptions& options) {
  constexpr std::int64_t kTimeoutNs = 3 * kNsPerSecond;
  TIDEMARK_TRY_ASSIGN(const auto space, read_address_space(pid_, memory_));
  if (!sees_file(pid_, options.library)) {
    return Error{Errc::kUnsupported, "nor does its Python see the library"};
  }
  const ScratchFile script(options.folder + "/attach.py");
  const ScratchFile result(options.folder + "/attach.result");
  struct stat folder {};
  ::stat(options.folder.c_str(), &folder);
  TIDEMARK_TRY(script.write(fmt::format("import ctypes, os\n"
                                        "library = ctypes.CDLL(os.fsdecode({}))\n"
                                        "result = library.{}({})\n"
                                        "with open(os.fsdecode({}), 'x') as file:\n"
                                        "    file.write(str(result))\n",
                                        python_bytes(options.library), wire::kAttachFunction,
                                        python_bytes(options.request),
                                        python_bytes(options.folder_seen_as + "/attach.result")),
                            folder.st_uid));
  std::string answer;
  TIDEMARK_TRY(run_python_script(pid_, memory_, space, options.folder_seen_as + "/attach.py",
                                 kTimeoutNs, [&] {
                                   if (auto text = read_file(result.path())) {
                                     answer = *std::move(text);
                                   }
                                   return !answer.empty();
                                 }));
  return status_of(answer.size() == 1 ? answer.front() - '0' : -1);
}

Result<Attachment> Attachment::find(pid_t pid) {
  TIDEMARK_TRY_ASSIGN(auto memory, RemoteMemory::open(pid));
  Attachment attachment(pid, std::move(memory));
  TIDEMARK_TRY_ASSIGN(const auto space, read_address_space(pid, attachment.memory_));
  TIDEMARK_TRY(attachment.find_functions(space));
  return attachment;
}

Status Attachment::find_functions(const AddressSpace& space) {
  const auto tracer = std::find_if(space.modules.begin(), space.modules.end(), is_tracer);
  if (tracer == space.modules.end()) {
    return Error{Errc::kNotFound, fmt::format("the tracer is not in process {}", pid_)};
  }
  const auto functions = exported_symbols(*tracer, memory_);
  const auto table = address_of(functions, wire::kRealFunctionsTable);
  const auto real = memory_.load<wire::RealFunctions>(table);
  if (table == 0 || !real || real->names != wire::hash_of_hook_names()) {
    return Error{Errc::kUnsupported,
                 fmt::format("the tracer in process {} is of another version", pid_)};
  }
  tracer_ = tracer->range;
  table_ = table;
  std::copy(std::begin(real->address), std::end(real->address), real_.begin());
  was_attached_ =
      std::any_of(real_.begin(), real_.end(), [](std::uint64_t each) { return each != 0; });
  if (was_attached_) {
    find_cuda_functions(space);
  }
  for (std::size_t i = 0; i < wire::kHooks; ++i) {
    hooks_[i] = address_of(functions, wire::kHookNames[i]);
  }
  for (std::size_t i = 0; i < wire::kPythonHooks; ++i) {
    hooks_[wire::kHooks + i] = address_of(functions, wire::kPythonHookNames[i]);
  }
  return ok();
}

// By the memory that it had when it was found, which goes when the process exits or starts another
// program.
bool Attachment::is_there() const {
  const auto head = memory_.load<std::array<char, SELFMAG>>(tracer_.begin);
  return head && std::string_view(head->data(), head->size()) == ELFMAG;
}

Status Attachment::write_stopped(const std::vector<GotSlot>& slots, const HookAddresses& to,
                                 Deadline deadline) {
  const StopWatch watch(figures_.process_stopped_ns);
  TIDEMARK_TRY_ASSIGN(const auto stopped, StoppedProcess::stop(pid_, deadline));
  TIDEMARK_TRY_ASSIGN(const std::size_t written, write_slots(slots, to, memory_));
  figures_.slots += written;
  return ok();
}

// A thread may be in a system call that cannot be interrupted (of a driver, of a network file
// system). The others do not stand still until it returns: they are stopped for a moment, several
// times if need be, and run four times as long in between.
Status Attachment::write(const std::vector<GotSlot>& slots, const HookAddresses& to,
                         std::int64_t timeout_ns) {
  if (slots.empty()) {
    return ok();
  }
  const Deadline deadline = Deadline::in(timeout_ns);
  Status done = ok();
  for (std::int64_t longest_ns = kNsPerSecond / 20;; longest_ns *= 2) {
    in_tracing_thread(pid_, [&] { done = write_stopped(slots, to, deadline.or_in(longest_ns)); });
    if (done || done.error().sys_errno != ETIMEDOUT || deadline.has_passed()) {
      return done;
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(4 * longest_ns));
  }
}

// The runtime of CUDA is loaded late, and where its functions are not seen by all.
void Attachment::find_cuda_functions(const AddressSpace& space) {
  for (const RemoteModule& module : space.modules) {
    if (!basename_of(module.path).starts_with("libcudart")) {
      continue;
    }
    for (std::size_t i = 0; i < wire::kHooks; ++i) {
      if (real_[i] == 0 && std::string_view(wire::kHookNames[i]).starts_with("cuda")) {
        real_[i] = find_exported(module, memory_, wire::kHookNames[i]);
      }
    }
  }
}

// Whether there is but one function that a call of free(), say, can lead to.
bool Attachment::has_one_allocator(const AddressSpace& space) const {
  const RemoteModule* const used = space.module_at(real_[0]);
  std::size_t c_libraries = 0;
  for (const RemoteModule& module : space.modules) {
    const std::string_view name = basename_of(module.path);
    if (name.starts_with("libc.so.6")) {
      ++c_libraries;
    } else if (&module != used && module.range != tracer_ && !name.starts_with("ld-linux") &&
               (find_exported(module, memory_, "malloc") != 0 ||
                find_exported(module, memory_, "free") != 0)) {
      return false;
    }
  }
  return c_libraries == 1;
}

Status Attachment::hook_modules(std::int64_t timeout_ns) {
  if (!was_attached_) {
    return ok();
  }
  TIDEMARK_TRY_ASSIGN(const auto space, read_address_space(pid_, memory_));
  if (std::none_of(space.modules.begin(), space.modules.end(), [&](const RemoteModule& module) {
        return module.range == tracer_ && is_tracer(module);
      })) {
    return Error{Errc::kNotFound, fmt::format("process {} runs another program now", pid_)};
  }
  find_cuda_functions(space);
  std::optional<bool> one_allocator;
  std::vector<GotSlot> slots;
  std::vector<SeenModule> seen;
  for (const RemoteModule& module : space.modules) {
    const auto before = std::find_if(seen_.begin(), seen_.end(), [&](const SeenModule& each) {
      return each.range == module.range && each.path == module.path;
    });
    SeenModule& now =
        seen.emplace_back(before == seen_.end() ? SeenModule{module.path, module.range} : *before);
    ++now.times;
    // The dynamic linker may be about to fill the slots in: a second time is enough to get all.
    if ((now.times > 2 && !now.has_unbound) || module.range == tracer_ ||
        basename_of(module.path).starts_with("ld-linux")) {
      continue;
    }
    const ModuleSlots found = read_slots(module, memory_, real_, tracer_, space.modules.front());
    slots.insert(slots.end(), found.real.begin(), found.real.end());
    if (!found.lazy.empty()) {
      // A library that brings its own allocator may have bound one of the two and not the other.
      one_allocator = one_allocator ? one_allocator : has_one_allocator(space);
      now.has_unbound = !*one_allocator || found.foreign > 0;
      if (!now.has_unbound) {
        slots.insert(slots.end(), found.lazy.begin(), found.lazy.end());
      }
    }
    if (now.times == 1) {
      figures_.foreign_slots += found.foreign;
      ++figures_.modules;
    }
  }
  const RemoteModule* const python = space.module_at(real_[wire::kHooks]);
  if (sees_python_objects_ && python != nullptr) {
    const auto tables = find_python_tables(*python, space.mappings, memory_, real_);
    if (!tables.empty()) {
      TIDEMARK_TRY(tell_tracer_of_python_objects(true));
      slots.insert(slots.end(), tables.begin(), tables.end());
    }
  }
  TIDEMARK_TRY(write(slots, hooks_, timeout_ns));
  seen_ = std::move(seen);
  return ok();
}

bool Attachment::see_python_objects() {
  sees_python_objects_ = real_[wire::kHooks] != 0;
  return sees_python_objects_;
}

Status Attachment::tell_tracer_of_python_objects(bool are_seen) const {
  const std::uint64_t word = are_seen ? 1 : 0;
  return memory_.write(table_ + offsetof(wire::RealFunctions, sees_python_objects),
                       {reinterpret_cast<const char*>(&word), sizeof(word)});
}

Result<std::vector<GotSlot>> Attachment::hooked_slots() const {
  if (!was_attached_) {
    return std::vector<GotSlot>();
  }
  TIDEMARK_TRY_ASSIGN(const auto space, read_address_space(pid_, memory_));
  std::vector<GotSlot> slots;
  for (const RemoteModule& module : space.modules) {
    if (module.range == tracer_) {
      continue;
    }
    const ModuleSlots found = read_slots(module, memory_, real_, tracer_, space.modules.front());
    slots.insert(slots.end(), found.hooked.begin(), found.hooked.end());
  }
  if (const RemoteModule* const python = space.module_at(real_[wire::kHooks])) {
    const auto tables = find_python_tables(*python, space.mappings, memory_, hooks_);
    slots.insert(slots.end(), tables.begin(), tables.end());
  }
  return slots;
}

Result<std::size_t> Attachment::count_hooked() const {
  TIDEMARK_TRY_ASSIGN(const auto slots, hooked_slots());
  return slots.size();
}

Status Attachment::unhook_modules(std::int64_t timeout_ns) {
  if (!was_attached_) {
    return ok();
  }
  TIDEMARK_TRY_ASSIGN(const auto slots, hooked_slots());
  seen_.clear();
  TIDEMARK_TRY(write(slots, real_, timeout_ns));
  return tell_tracer_of_python_objects(false);
}

}  // namespace tidemark::inject
