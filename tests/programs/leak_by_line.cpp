// SPDX-License-Identifier: Apache-2.0
// Leaks at one line, holds a lot since its start, and frees all the rest: for the allocation
// tracer. Its truth names the function and the line. Options: --count N, --step-ms N, --leak-kb N,
// --children N (each does the same), --threads N (they leak in its place), --two-ways 1, --die
// signal, --hold-mb N, --status N (its own, 7 if not told).
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "api/tidemark.h"

namespace {

struct Options {
  long count = 100;
  long step_ms = 20;
  long leak_kb = 256;
  long children = 0;
  long threads = 0;
  long two_ways = 0;  // leak through two call stacks
  long die = 0;       // by this signal, at the end
  long hold_mb = 64;
  long status = 7;
};

// What the compiler may not take away.
void keep(void* block) {
  [[maybe_unused]] static void* volatile sink = nullptr;
  sink = block;
}

// There is work left when it comes back: it has a frame of its own in every stack.
[[gnu::noinline]] void* take(std::size_t bytes) {
  void* const block = std::malloc(bytes);
  std::memset(block, 0x5a, bytes);
  keep(block);
  return block;
}

[[gnu::noinline]] void* take_twice(std::size_t bytes) {
  void* const block = take(bytes / 2);
  keep(take(bytes - bytes / 2));
  return block;
}

constexpr int kLeakingLine = __LINE__ + 2;
[[gnu::noinline]] void leak_here(std::size_t bytes, bool two_ways) {
  keep(two_ways ? take_twice(bytes) : take(bytes));
  keep(nullptr);
}

[[gnu::noinline]] void hold_at_start(std::size_t megabytes) {
  take(megabytes << 20U);
  keep(nullptr);
}

[[gnu::noinline]] void use_and_free(std::size_t bytes) {
  std::free(take(bytes));
  keep(nullptr);
}

long number_after(int argc, char** argv, std::string_view name, long otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) {
      return std::strtol(argv[i + 1], nullptr, 10);
    }
  }
  return otherwise;
}

void leak_at_every_step(const Options& options) {
  for (long step = 1; step <= options.count; ++step) {
    leak_here(static_cast<std::size_t>(options.leak_kb) << 10U, options.two_ways != 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(options.step_ms));
  }
}

void run(const Options& options) {
  hold_at_start(static_cast<std::size_t>(options.hold_mb));
  std::vector<std::thread> threads;
  for (long i = 0; i < options.threads; ++i) {
    threads.emplace_back(leak_at_every_step, options);
  }
  for (long step = 1; step <= options.count; ++step) {
    tidemark_step(step);
    if (threads.empty()) {
      leak_here(static_cast<std::size_t>(options.leak_kb) << 10U, options.two_ways != 0);
    }
    use_and_free(std::size_t{1} << 20U);
    std::this_thread::sleep_for(std::chrono::milliseconds(options.step_ms));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (options.die != 0) {
    ::raise(static_cast<int>(options.die));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.count = number_after(argc, argv, "--count", options.count);
  options.step_ms = number_after(argc, argv, "--step-ms", options.step_ms);
  options.leak_kb = number_after(argc, argv, "--leak-kb", options.leak_kb);
  options.children = number_after(argc, argv, "--children", options.children);
  options.threads = number_after(argc, argv, "--threads", options.threads);
  options.two_ways = number_after(argc, argv, "--two-ways", options.two_ways);
  options.die = number_after(argc, argv, "--die", options.die);
  options.hold_mb = number_after(argc, argv, "--hold-mb", options.hold_mb);
  options.status = number_after(argc, argv, "--status", options.status);
  std::printf(
      "{\"victim\":\"leak_by_line\",\"function\":\"leak_here\",\"line\":%d,"
      "\"bytes_per_step\":%ld}\n",
      kLeakingLine, options.leak_kb * 1024);
  std::fflush(stdout);
  for (long i = 0; i < options.children; ++i) {
    if (::fork() == 0) {
      run(options);
      std::_Exit(0);
    }
  }
  run(options);
  while (::wait(nullptr) > 0) {
  }
  return static_cast<int>(options.status);
}
