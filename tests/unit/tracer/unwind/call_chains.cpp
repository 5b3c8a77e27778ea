// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/unwind/call_chains.h"

#include <alloca.h>
#include <setjmp.h>

#include <algorithm>
#include <cstddef>

namespace tidemark::tests {
namespace {

thread_local std::vector<std::uint64_t> g_returns;
thread_local volatile int g_sink = 0;
thread_local jmp_buf g_back;

class Noted {
 public:
  explicit Noted(void* return_address) {
    g_returns.push_back(reinterpret_cast<std::uint64_t>(return_address));
  }
  ~Noted() { g_returns.pop_back(); }
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;
};

void touch(void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

[[noreturn, gnu::noinline]] void give_up(Hook hook) {
  g_returns.push_back(reinterpret_cast<std::uint64_t>(__builtin_return_address(0)));
  hook();
  g_returns.pop_back();
  longjmp(g_back, 1);
}

[[gnu::noinline]] void wander_small(std::mt19937& random, int depth, Hook hook);

[[gnu::noinline]] void wander_with_alloca(std::mt19937& random, int depth, Hook hook) {
  const Noted noted(__builtin_return_address(0));
  touch(alloca(random() % 200 + 1));
  if (random() % 2 == 0) {
    hook();
  }
  wander(random, depth - 1, hook);
  g_sink = g_sink + 1;
}

[[gnu::noinline]] void wander_large(std::mt19937& random, int depth, Hook hook) {
  const Noted noted(__builtin_return_address(0));
  char buffer[700];
  touch(buffer);
  for (unsigned i = 0; i < random() % 3; ++i) {
    hook();
  }
  wander_small(random, depth - 1, hook);
  hook();
  g_sink = g_sink + 1;
}

[[gnu::noinline]] void wander_small(std::mt19937& random, int depth, Hook hook) {
  const Noted noted(__builtin_return_address(0));
  wander(random, depth - 1, hook);
  if (random() % 4 == 0) {
    wander(random, depth - 2, hook);
  }
  g_sink = g_sink + 1;
}

}  // namespace

std::vector<std::uint64_t> noted_returns() { return {g_returns.rbegin(), g_returns.rend()}; }

[[gnu::noinline]] void call_plain(int more, Hook hook) {
  const Noted noted(__builtin_return_address(0));
  if (more > 0) {
    call_plain(more - 1, hook);
  } else {
    hook();
  }
  g_sink = g_sink + 1;
}

[[gnu::noinline]] void call_with_alloca(int bytes, Hook hook) {
  const Noted noted(__builtin_return_address(0));
  touch(alloca(static_cast<std::size_t>(bytes)));
  hook();
  g_sink = g_sink + 1;
}

[[gnu::noinline]] void call_realigned(int bytes, Hook hook) {
  const Noted noted(__builtin_return_address(0));
  alignas(128) char aligned[128];
  touch(aligned);
  touch(alloca(static_cast<std::size_t>(bytes)));
  hook();
  touch(aligned);
}

[[gnu::noinline]] void call_with_large_frame(Hook hook) {
  const Noted noted(__builtin_return_address(0));
  char large[300 * 1024];
  touch(large);
  hook();
  touch(large);
}

[[gnu::noinline]] void call_noreturn(Hook hook) {
  const Noted noted(__builtin_return_address(0));
  if (setjmp(g_back) == 0) {
    give_up(hook);
  }
}

[[gnu::noinline]] void call_through_jit(const void* code, Hook hook) {
  const Noted noted(__builtin_return_address(0));
  reinterpret_cast<void (*)(Hook)>(reinterpret_cast<std::uintptr_t>(code))(hook);
  g_sink = g_sink + 1;
}

[[gnu::noinline]] void wander(std::mt19937& random, int depth, Hook hook) {
  const Noted noted(__builtin_return_address(0));
  if (depth <= 0) {
    hook();
  } else if (random() % 3 == 0) {
    wander_with_alloca(random, depth, hook);
  } else if (random() % 2 == 0) {
    wander_large(random, depth, hook);
  } else {
    wander_small(random, depth, hook);
  }
  g_sink = g_sink + 1;
}

}  // namespace tidemark::tests
