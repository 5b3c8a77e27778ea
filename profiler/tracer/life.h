// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

class Recorder;

// The one recorder of the process.
extern constinit Recorder g_recorder;

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
extern constinit ForkPage g_fork_page;

// The long way of ready(): begins anew in a forked child.
bool begin_after_fork() noexcept;

// Whether the tables may be used.
inline bool ready() noexcept {
  return g_fork_page.on.load(std::memory_order_acquire) != 0 || begin_after_fork();
}

// From the constructor: reads the request and begins.
void begin(const char* request) noexcept;
// The process is about to become another program, or could not.
void exec_begins() noexcept;
void exec_failed() noexcept;
// The process ends in order.
void end() noexcept;
// Whether children that call exec are to be traced; the entry of the environment that says so to
// them, empty when there was no request.
bool follows_children() noexcept;
char* request_entry() noexcept;

}  // namespace tidemark::tracer
