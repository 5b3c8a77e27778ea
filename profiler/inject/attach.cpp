// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/attach.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
#include "profiler/inject/library_loader.h"
#include "profiler/inject/python_script.h"

namespace tidemark::inject {
namespace {

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

}  // namespace

Result<Attachment> Attachment::attach(pid_t pid, const AttachOptions& options) {
  TIDEMARK_TRY(check_target(pid));
  TIDEMARK_TRY_ASSIGN(auto memory, RemoteMemory::open(pid));
  Attachment attachment(pid, std::move(memory));
  const LoadOptions load = {options.library, wire::kAttachFunction, options.request,
                            options.timeout_ns, options.is_cancelled};
  const auto answer =
      load_and_call(pid, attachment.memory_, kTracerLibrary, load, attachment.figures_);
  const Status loaded = answer ? status_of(static_cast<int>(*answer)) : Status(answer.error());
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
  const RemoteModule* const tracer = find_library(space, kTracerLibrary);
  if (tracer == nullptr) {
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
  if (const RemoteModule* const there = find_library(space, kTracerLibrary);
      there == nullptr || there->range != tracer_) {
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
