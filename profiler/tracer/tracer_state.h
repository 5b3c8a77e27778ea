// SPDX-License-Identifier: Apache-2.0
// Whether the tracer records in this process, and what fork, exec, seccomp and exit change in that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/wire/hook_names.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

class Recorder;

// The one recorder of the process. Hidden, like all variables of the tracer that other files use:
// -fvisibility=hidden does not reach declarations, and each access would go through the GOT.
[[gnu::visibility("hidden")]] extern constinit Recorder g_recorder;

enum class TracerState : std::uint32_t {
  kNotStarted,  // the constructor of the library has not run yet
  kStarting,    // one thread creates the trace file
  kOn,
  kOff,  // until the process ends
};

// A page that the kernel zeroes in a child (MADV_WIPEONFORK), by whatever call it was forked: the
// parent's trace file is not mapped there.
struct alignas(4096) ForkPage {
  std::atomic<std::uint32_t> on;
  char rest[4092];
};
[[gnu::visibility("hidden")]] extern constinit ForkPage g_fork_page;

// The slow path of can_record(): creates a trace file in a forked child.
bool restart_after_fork() noexcept;

// Whether the tables of the trace file are mapped in this process and may be used.
inline bool can_record() noexcept {
  return g_fork_page.on.load(std::memory_order_acquire) != 0 || restart_after_fork();
}

// Whether the tracer is on and the process was not forked since its last exec. In a forked one,
// locks may be held by threads that only the parent has.
bool is_on_and_never_forked() noexcept;

// From the constructor of the library. `request` is the text of wire::kRequestVariable; nullptr:
// the tracer stays off.
void start_tracer(const char* request) noexcept;
// The same in a process that runs already, once.
wire::AttachResult attach_tracer(const char* request) noexcept;
// Around a fork by whatever call; the second in the child only. The child starts with a file of its
// own at its next hook, unless it returns into a hook that a signal handler interrupted.
void before_fork() noexcept;
void after_fork_in_child() noexcept;
// The last thing before the process becomes another program, and after that failed. A filtered
// child of vfork no longer counts as one from before_exec() on; after_failed_exec() needs its
// answer to undo that.
bool before_exec() noexcept;
void after_failed_exec(bool was_stopped) noexcept;
// The process is about to install a seccomp filter that may harm it, or could not. In a child of
// vfork system calls stay stopped until it becomes another program. False: they were stopped
// already.
bool before_seccomp() noexcept;
void after_failed_seccomp() noexcept;
void on_process_exit() noexcept;

// Whether this process is a child of vfork, which runs in the memory of its parent.
bool is_child_of_vfork() noexcept;

// Whether programs that this process starts are to be traced. Never where system calls are
// filtered: the child inherits the filter, which may kill it for calls of a starting tracer.
bool follows_children() noexcept;
// The folder for the trace files of this process and of its children.
const char* trace_folder() noexcept;
// The environment entry with the request of this process; empty when there was none. Outdated once
// the mode has changed: then write_request_entry(), to a buffer of most_request_bytes().
char* request_entry() noexcept;
bool request_is_outdated() noexcept;
std::size_t most_request_bytes() noexcept;
void write_request_entry(char* text) noexcept;

}  // namespace tidemark::tracer
