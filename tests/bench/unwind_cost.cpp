// SPDX-License-Identifier: Apache-2.0
// Prints what one stack costs, in nanoseconds (best of 70 rounds, interleaved, because a neighbour
// can only make it slower), ours beside libunwind's, and the memory that ours took for it.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

#include "common/clock.h"
#include "profiler/tracer/unwind/rule_cache.h"
#include "profiler/tracer/unwind/unwind.h"

namespace {

using namespace tidemark::tracer;

constexpr int kRounds = 70;  // short ones: some fit between two turns of a neighbour
constexpr int kCalls = 2'000;

constinit StackTrace g_trace;
constinit bool g_reuse = true;
int (*g_backtrace)(void**, int) = nullptr;
constinit void* g_buffer[kMaxFrames] = {};
constinit std::int64_t g_elapsed_ns = 0;
constinit volatile int g_sink = 0;

[[gnu::noinline]] void our_hook() {
  g_trace.reusable = g_trace.reusable && g_reuse;
  const Registers registers = capture_registers();
  unwind(registers, stack_bounds(registers.sp), g_trace);
}

[[gnu::noinline]] void their_hook() { g_backtrace(g_buffer, kMaxFrames); }

// One frame each, so that every frame has a return address of its own.
template <int kFrames, typename Leaf>
[[gnu::noinline]] void nested(Leaf leaf) {
  if constexpr (kFrames > 0) {
    nested<kFrames - 1>(leaf);
  } else {
    leaf();
  }
  g_sink = g_sink + 1;  // no tail call
}

[[gnu::noinline]] void two_deeper(void (*hook)()) {
  nested<2>(hook);
  g_sink = g_sink + 1;
}

// Calls that differ in where they come from: in the innermost frame, or in the innermost three.
void measure(void (*hook)(), bool changing) {
  const tidemark::SystemClock clock;
  const std::int64_t begin = clock.monotonic_ns();
  for (int n = 0; n < kCalls; n += 2) {
    hook();
    if (changing) {
      two_deeper(hook);
    } else {
      hook();
    }
  }
  g_elapsed_ns = clock.monotonic_ns() - begin;
}

struct Result {
  const char* name;
  void (*hook)();
  bool reuse;
  bool changing;
  double best_ns = std::numeric_limits<double>::max();
};

template <int kFrames>
void compare() {
  Result results[] = {{"ours, reused", our_hook, true, false},
                      {"ours, inner 3 frames change", our_hook, true, true},
                      {"ours, every frame walked", our_hook, false, false},
                      {"libunwind", their_hook, false, false}};
  for (int round = 0; round < kRounds; ++round) {
    for (Result& result : results) {
      if (result.hook == their_hook && g_backtrace == nullptr) {
        continue;
      }
      g_reuse = result.reuse;
      nested<kFrames>([&] { measure(result.hook, result.changing); });
      result.best_ns = std::min(result.best_ns, static_cast<double>(g_elapsed_ns) / kCalls);
    }
  }
  nested<kFrames>([] { measure(our_hook, false); });
  std::printf("depth %u\n", g_trace.depth);
  for (const Result& result : results) {
    if (result.hook != their_hook || g_backtrace != nullptr) {
      std::printf("  %-28s %7.1f ns\n", result.name, result.best_ns);
    }
  }
}

// The cost of a return address that is not in the cache.
void first_sight() {
  const tidemark::SystemClock clock;
  constexpr int kTimes = 200;
  std::int64_t total_ns = 0;
  for (int i = 0; i < kTimes; ++i) {
    forget_rules();
    const std::int64_t begin = clock.monotonic_ns();
    our_hook();
    total_ns += clock.monotonic_ns() - begin;
  }
  std::printf("first sight of a frame: %.0f ns\n",
              static_cast<double>(total_ns) / kTimes / g_trace.depth);
}

long anonymous_rss_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "RssAnon:") {
      long kib = 0;
      status >> kib;
      return kib;
    }
  }
  return 0;
}

}  // namespace

int main() {
  start_unwinder();
  if (void* const library = dlopen("libunwind.so.8", RTLD_LOCAL | RTLD_NOW); library != nullptr) {
    g_backtrace = reinterpret_cast<int (*)(void**, int)>(dlsym(library, "unw_backtrace"));
  } else {
    std::puts("libunwind is not installed: no peer");
  }
  const long before_kib = anonymous_rss_kib();
  our_hook();
  std::printf("memory for the first stack: %ld KiB\n", anonymous_rss_kib() - before_kib);
  compare<6>();
  compare<34>();
  first_sight();
  std::printf("cache: at most %zu KiB; a trace: %zu bytes\n", sizeof(g_rule_slots) / 1024,
              sizeof(StackTrace));
}
