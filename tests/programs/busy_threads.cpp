// SPDX-License-Identifier: Apache-2.0
// A program that is busy in all the ways that make attaching hard: threads that allocate, start
// processes, load and unload a library, throw, wait with timeouts, and wait in calls that a signal
// would interrupt. It checks itself: any odd result is printed and ends it with 1.
//   busy_threads SECONDS LIBRARY [interruptible]    until then, or until its standard input ends
// `interruptible`: that a wait was interrupted is nothing odd. Whoever is killed while it stops a
// thread cannot hide that from it.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

bool g_may_be_interrupted = false;
std::atomic<bool> g_stops = false;
std::atomic<long> g_rounds = 0;
std::atomic<long> g_failures = 0;

void fail(const char* what, long value) {
  std::fprintf(stderr, "odd: %s (%ld, errno %d)\n", what, value, errno);
  ++g_failures;
}

template <typename Work>
void repeat(Work work) {
  while (!g_stops) {
    work();
    ++g_rounds;
  }
}

void allocate() {
  constexpr std::size_t kBlocks = 200;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::size_t bytes = 16 + i * 97 % 9000;
    blocks.push_back(std::make_unique<char[]>(bytes));
    std::memset(blocks.back().get(), static_cast<int>(i), bytes);
  }
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (blocks[i][0] != static_cast<char>(i)) {
      fail("a block changed", static_cast<long>(i));
    }
  }
}

void start_process() {
  const pid_t child = ::fork();
  if (child == 0) {
    std::free(std::malloc(1000));
    ::_exit(7);
  }
  int status = 0;
  pid_t waited = 0;
  while ((waited = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  if (child > 0 && (waited != child || WEXITSTATUS(status) != 7)) {
    fail("a child", status);
  }
  ::usleep(2000);
}

void load_library(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    fail(::dlerror(), 0);
    return;
  }
  ::dlclose(library);
}

[[gnu::noinline]] double throw_and_compute(int depth, double x) {
  if (depth == 0) {
    throw std::runtime_error(std::to_string(x));
  }
  return throw_and_compute(depth - 1, x * 1.5) + x;
}

void throw_through() {
  const double x = 1.25;
  try {
    throw_and_compute(20, x);
    fail("nothing was thrown", 0);
  } catch (const std::runtime_error& error) {
    if (std::stod(error.what()) < 4155.0 || std::stod(error.what()) > 4157.0) {
      fail("a wrong sum", static_cast<long>(std::stod(error.what())));
    }
  }
}

// Registers of all kinds hold intermediate results.
void compute() {
  double sum = 0;
  std::uint64_t bits = 1;
  for (int i = 1; i <= 200000; ++i) {
    sum += 1.0 / (static_cast<double>(i) * i);
    bits = bits * 6364136223846793005U + 1442695040888963407U;
  }
  static const std::uint64_t expected_bits = bits;
  static const double expected_sum = sum;
  if (bits != expected_bits || sum != expected_sum) {
    fail("a wrong result", static_cast<long>(bits));
  }
}

void wait_in_epoll(int descriptor) {
  epoll_event event = {};
  if (const int count = ::epoll_wait(descriptor, &event, 1, 30);
      count != 0 && !(g_may_be_interrupted && errno == EINTR)) {
    fail("epoll_wait", count);
  }
}

void wait_in_poll() {
  if (const int count = ::poll(nullptr, 0, 20);
      count != 0 && !(g_may_be_interrupted && errno == EINTR)) {
    fail("poll", count);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    return 2;
  }
  const char* const library = arguments[2];
  g_may_be_interrupted = count > 3;
  const int descriptor = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::thread> threads;
  threads.emplace_back([] { repeat(allocate); });
  threads.emplace_back([] { repeat(allocate); });
  threads.emplace_back([] { repeat(start_process); });
  threads.emplace_back([&] { repeat([&] { load_library(library); }); });
  threads.emplace_back([] { repeat(throw_through); });
  threads.emplace_back([] { repeat(compute); });
  threads.emplace_back([&] { repeat([&] { wait_in_epoll(descriptor); }); });
  threads.emplace_back([] { repeat(wait_in_poll); });
  std::printf("ready\n");
  std::fflush(stdout);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(arguments[1]));
  char byte = 0;
  while (std::chrono::steady_clock::now() < end && g_failures == 0) {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, 100) > 0 && ::read(STDIN_FILENO, &byte, 1) == 0) {
      break;
    }
  }
  g_stops = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::printf("%ld rounds, %ld odd\n", g_rounds.load(), g_failures.load());
  return g_failures == 0 ? 0 : 1;
}
