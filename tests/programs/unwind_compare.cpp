// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that compares our unwinder with libunwind in somebody else's program: at
// every Nth malloc both walk the stack. At exit one line goes to the file that
// TIDEMARK_UNWIND_COMPARE names: program, equal, longer (libunwind gave up early), shorter,
// different. TIDEMARK_UNWIND_COMPARE_EVERY is N; with TIDEMARK_UNWIND_COMPARE_SHOW=n the first n
// pairs of stacks that are not equal go there as well. With TIDEMARK_UNWIND_COMPARE_ALONE=1
// libunwind is left out, and our trace by reuse is compared with one afresh, in all threads at
// once.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "profiler/tracer/unwind/libunwind_fallback.h"
#include "profiler/tracer/unwind/rule_cache.h"
#include "profiler/tracer/unwind/unwind.h"

extern "C" void* __libc_malloc(std::size_t size);

namespace {

using namespace tidemark::tracer;

enum Outcome { kEqual, kLonger, kShorter, kDifferent, kOutcomes };

constinit std::atomic<bool> g_on{false};
// Taken for a whole comparison and never waited for: libunwind's locks and those of ld.so are taken
// in both orders when a second thread is in dlopen.
constinit std::atomic<bool> g_busy{false};
constinit std::atomic<unsigned long> g_calls{0};
constinit std::atomic<unsigned long> g_counts[kOutcomes] = {};
constinit unsigned long g_every = 10;
constinit std::atomic<long> g_to_show{0};
constinit bool g_alone = false;
constinit thread_local StackTrace g_reused;
constinit StackTrace g_ours;
constinit StackTrace g_theirs;

int open_report() {
  const char* const path = getenv("TIDEMARK_UNWIND_COMPARE");
  return path != nullptr ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
}

void show_frame(int fd, const char* who, unsigned i, std::uint64_t pc) {
  Dl_info info = {};
  char line[512];
  const bool known = dladdr(reinterpret_cast<void*>(pc - 1), &info) != 0;
  const int length = snprintf(line, sizeof(line), "  %s %u %#lx %s+%#lx %s\n", who, i, pc,
                              known ? info.dli_fname : "?",
                              known ? pc - reinterpret_cast<std::uint64_t>(info.dli_fbase) : 0UL,
                              known && info.dli_sname != nullptr ? info.dli_sname : "");
  (void)!write(fd, line, static_cast<std::size_t>(length));
}

void show(Outcome outcome, unsigned same) {
  const int fd = open_report();
  char line[64];
  const int length = snprintf(line, sizeof(line), " outcome %d\n", outcome);
  (void)!write(fd, line, static_cast<std::size_t>(length));
  const unsigned first = same > 1 ? same - 2 : 0;
  for (unsigned i = first; i < g_ours.depth && i < same + 3; ++i) {
    show_frame(fd, "ours  ", i, g_ours.pc[i]);
  }
  for (unsigned i = first; i < g_theirs.depth && i < same + 3; ++i) {
    show_frame(fd, "theirs", i, g_theirs.pc[i]);
  }
  close(fd);
}

[[gnu::noinline]] void compare(const Registers& registers) {
  unwind(registers, stack_bounds(registers.sp), g_ours);
  if (unwind_with_libunwind(registers, g_theirs) != LibunwindResult::kDone) {
    return;
  }
  unsigned same = 0;
  while (same < g_ours.depth && same < g_theirs.depth && g_ours.pc[same] == g_theirs.pc[same]) {
    ++same;
  }
  Outcome outcome = kDifferent;
  if (same == g_ours.depth && same == g_theirs.depth) {
    outcome = kEqual;
  } else if (same == g_theirs.depth) {
    outcome = kLonger;
  } else if (same == g_ours.depth) {
    outcome = kShorter;
  }
  g_counts[outcome].fetch_add(1, std::memory_order_relaxed);
  if (outcome != kEqual && g_to_show.fetch_sub(1, std::memory_order_relaxed) > 0) {
    show(outcome, same);
  }
}

[[gnu::noinline]] void compare_with_ourselves(const Registers& registers) {
  const StackBounds bounds = stack_bounds(registers.sp);
  unwind(registers, bounds, g_reused);
  StackTrace fresh;
  unwind(registers, bounds, fresh);
  const bool equal = fresh.depth == g_reused.depth && fresh.hash[0] == g_reused.hash[0] &&
                     std::equal(fresh.pc, fresh.pc + fresh.depth, g_reused.pc);
  g_counts[equal ? kEqual : kDifferent].fetch_add(1, std::memory_order_relaxed);
}

[[gnu::constructor]] void start() {
  g_alone = getenv("TIDEMARK_UNWIND_COMPARE_ALONE") != nullptr;
  if (getenv("TIDEMARK_UNWIND_COMPARE") == nullptr || !(g_alone || load_libunwind()) ||
      !start_unwinder()) {
    return;
  }
  if (const char* const every = getenv("TIDEMARK_UNWIND_COMPARE_EVERY"); every != nullptr) {
    g_every = strtoul(every, nullptr, 10);
  }
  if (const char* const count = getenv("TIDEMARK_UNWIND_COMPARE_SHOW"); count != nullptr) {
    g_to_show = atol(count);
  }
  g_on.store(true, std::memory_order_release);
}

[[gnu::destructor]] void report() {
  if (!g_on.exchange(false)) {
    return;
  }
  char program[64] = "?";
  if (const int comm = open("/proc/self/comm", O_RDONLY | O_CLOEXEC); comm >= 0) {
    const ssize_t length = read(comm, program, sizeof(program) - 1);
    program[length > 0 ? length - 1 : 0] = '\0';
    close(comm);
  }
  for (char* c = program; *c != '\0'; ++c) {
    *c = *c == ' ' ? '_' : *c;
  }
  char line[256];
  const int length =
      snprintf(line, sizeof(line), "%s %lu %lu %lu %lu\n", program, g_counts[kEqual].load(),
               g_counts[kLonger].load(), g_counts[kShorter].load(), g_counts[kDifferent].load());
  if (const int fd = open_report(); fd >= 0) {
    (void)!write(fd, line, static_cast<std::size_t>(length));
    close(fd);
  }
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void* malloc(std::size_t size) {
  if (g_on.load(std::memory_order_relaxed) &&
      g_calls.fetch_add(1, std::memory_order_relaxed) % g_every == 0) {
    if (g_alone) {
      compare_with_ourselves(capture_registers());
    } else if (!g_busy.exchange(true)) {
      const int saved_errno = errno;
      compare(capture_registers());
      errno = saved_errno;
      g_busy.store(false);
    }
  }
  return __libc_malloc(size);
}

extern "C" [[gnu::visibility("default")]] int dlclose(void* handle) {
  static constinit std::atomic<int (*)(void*)> real{nullptr};
  if (real.load() == nullptr) {
    real = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_NEXT, "dlclose"));
  }
  const int result = real.load()(handle);
  forget_rules();
  return result;
}
