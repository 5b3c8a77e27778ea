// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "profiler/inject/got_slots.h"
#include "profiler/inject/library_loader.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"
#include "profiler/inject/traced_thread.h"

// The tracer in a process that runs already. The library is loaded by a call of dlopen in one of
// the threads of the process, stopped at a place where it may call anything; all else is done from
// outside, by writing to its memory. Nothing is left behind in a process that it fails in.
namespace tidemark::inject {

struct AttachOptions {
  std::string library;  // the tracer
  std::string request;  // to it, see profiler/wire/trace_request.h
  // A folder for files that both see, for an interpreter that is asked to load the tracer; empty:
  // none is asked. As we see it, and as the process does.
  std::string folder;
  std::string folder_seen_as;
  std::int64_t timeout_ns = 0;
  std::function<bool()> is_cancelled = [] { return false; };
};

// Why no library can be loaded into a process, in words; ok() where nothing is known that speaks
// against it.
Status check_target(pid_t pid);
// What to do where the error of that was Errc::kPermission.
std::string permission_hint(pid_t pid);

// Whether a process has filtered its system calls itself, beyond what its container does: such a
// filter may kill it for a call that the tracer makes. What all of a container have (its first
// process, or we) only refuses calls.
bool has_seccomp_filter_of_its_own(pid_t pid);

// How it went.
struct AttachFigures : LoadFigures {
  std::int64_t process_stopped_ns = 0;  // the longest that all threads stood still
  std::string detour;             // why another way than the first was taken; empty: it was not
  std::size_t slots = 0;          // that now lead to the tracer
  std::size_t foreign_slots = 0;  // that another tool has changed, and were left alone
  std::size_t modules = 0;
};

// The tracer in one process. All calls by one thread at a time.
class Attachment {
 public:
  // Loads the tracer and makes it start. No module calls it yet.
  static Result<Attachment> attach(pid_t pid, const AttachOptions& options);
  // For a process that has the tracer in it: by an earlier attachment, forked from such a one, or
  // preloaded. Errc::kNotFound: the tracer is not in it.
  static Result<Attachment> find(pid_t pid);

  pid_t pid() const { return pid_; }
  // The tracer was started in it while it ran. False: it was preloaded, and the program calls it by
  // itself; or it was loaded, but never started.
  bool was_attached() const { return was_attached_; }
  // Where the library begins: forked processes have it at the same place.
  std::uint64_t tracer_address() const { return tracer_.begin; }
  // False: the process has exited, or runs another program by now, which does not have this tracer.
  bool is_there() const;
  const AttachFigures& figures() const { return figures_; }
  // From the next hook_modules() on, small objects of Python are seen one by one. False: there is
  // no such interpreter, or its objects come from malloc and are seen anyway.
  bool see_python_objects();
  // Lets all modules that do not yet call the tracer call it, those that were loaded since the last
  // call. Cheap when there are none.
  Status hook_modules(std::int64_t timeout_ns);
  // How many places lead to the tracer now.
  Result<std::size_t> count_hooked() const;
  // Lets them call the real functions again. The tracer stays loaded, and does nothing.
  Status unhook_modules(std::int64_t timeout_ns);

 private:
  Attachment(pid_t pid, RemoteMemory memory) : pid_(pid), memory_(std::move(memory)) {}
  Status load_by_python(const AttachOptions& options);
  Status find_functions(const AddressSpace& space);
  void find_cuda_functions(const AddressSpace& space);
  bool has_one_allocator(const AddressSpace& space) const;
  Result<std::vector<GotSlot>> hooked_slots() const;
  Status tell_tracer_of_python_objects(bool are_seen) const;
  Status write(const std::vector<GotSlot>& slots, const HookAddresses& to, std::int64_t timeout_ns);
  Status write_stopped(const std::vector<GotSlot>& slots, const HookAddresses& to,
                       Deadline deadline);

  // A module, how often it was looked through, and whether it has slots that were left alone since
  // they are not bound yet.
  struct SeenModule {
    std::string path;
    AddressRange range;
    int times = 0;
    bool has_unbound = false;
  };

  pid_t pid_;
  RemoteMemory memory_;
  AddressRange tracer_;
  HookAddresses hooks_ = {};
  HookAddresses real_ = {};
  std::uint64_t table_ = 0;  // of wire::RealFunctions
  bool sees_python_objects_ = false;
  bool was_attached_ = false;
  std::vector<SeenModule> seen_;
  AttachFigures figures_;
};

}  // namespace tidemark::inject
