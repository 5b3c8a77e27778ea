// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/export.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

class Recorder;

// The one recorder of the process.
TIDEMARK_OURS extern constinit Recorder g_recorder;

enum class Life : std::uint32_t {
  kCold,      // the constructor has not run yet
  kStarting,  // one thread makes the file
  kOn,
  kOff,  // for ever
};

// A page that the kernel empties in a child (MADV_WIPEONFORK), by whatever call it was made: what
// is mapped for the parent must not be touched there.
struct alignas(4096) ForkPage {
  std::atomic<std::uint32_t> on;
  char rest[4092];
};
TIDEMARK_OURS extern constinit ForkPage g_fork_page;

// The long way of ready(): begins anew in a forked child.
bool begin_after_fork() noexcept;

// Whether the tables may be used.
inline bool ready() noexcept {
  return g_fork_page.on.load(std::memory_order_acquire) != 0 || begin_after_fork();
}

// Whether it is on in a process that began with its program: not forked, with other threads of its
// parent left behind in whatever they did.
bool is_on_since_its_start() noexcept;

// From the constructor: reads the request and begins.
void begin(const char* request) noexcept;
// The process is about to be forked; it was, and this is the child, by whatever call: its hooks
// begin anew, unless it returns into one that the parent was interrupted in.
void fork_begins() noexcept;
void forked() noexcept;
// The process is about to become another program, or could not. Called last before that: what a
// child of vfork has to keep silent about ends there, and goes on when exec_failed() is told what
// exec_begins() has said.
bool exec_begins() noexcept;
void exec_failed(bool was_silent) noexcept;
// The process is about to filter its system calls, or could not. It may be a child of vfork, which
// is silent until it becomes another program. False: it is silent already.
bool filter_begins() noexcept;
void filter_failed() noexcept;
// The process ends in order.
void end() noexcept;
// Whether children that call exec are to be traced. Not where system calls are filtered: the child
// inherits the filter, and a tracer that begins makes calls that it may not know.
bool follows_children() noexcept;
// The entry of the environment that tells them so, as this process was told; empty when there was
// no request. It is out of date when the mode was changed since: then write_request_entry() is to
// be used, which needs most_request_bytes().
char* request_entry() noexcept;
bool request_is_outdated() noexcept;
std::size_t most_request_bytes() noexcept;
void write_request_entry(char* text) noexcept;

}  // namespace tidemark::tracer
