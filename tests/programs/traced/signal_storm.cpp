// SPDX-License-Identifier: Apache-2.0
// Signal handlers that allocate, while the thread below them is inside a hook. What they interrupt
// is never malloc itself, which no handler may: the threads that get signals map memory, and
// another one allocates.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

std::atomic<int> g_handled = 0;

VICTIM_SITE void* mapped_below() {
  return ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
VICTIM_SITE void* beside_the_storm() { return seen(std::malloc(88)); }

void handle(int) {
  std::free(seen(std::malloc(3000)));
  g_handled.fetch_add(1);
}

int main() {
  constexpr int kSignals = 20000;
  struct sigaction action = {};
  action.sa_handler = handle;
  ::sigaction(SIGUSR1, &action, nullptr);
  std::atomic<bool> stop = false;
  std::atomic<bool> ready = false;
  std::thread mapper([&] {
    // On a stack of its own, as programs that expect overflows have it.
    static char room[64 * 1024];
    stack_t other = {};
    other.ss_sp = room;
    other.ss_size = sizeof(room);
    ::sigaltstack(&other, nullptr);
    ready = true;
    while (!stop) {
      ::munmap(mapped_below(), 4096);
    }
  });
  while (!ready) {
    std::this_thread::yield();
  }
  for (int i = 0; i < kSignals; ++i) {
    if (i == kSignals / 2) {
      action.sa_flags = SA_ONSTACK;
      ::sigaction(SIGUSR1, &action, nullptr);
    }
    ::pthread_kill(mapper.native_handle(), SIGUSR1);
    beside_the_storm();
    if (i % 8 == 0) {
      std::this_thread::yield();
    }
  }
  stop = true;
  mapper.join();
  if (g_handled == 0) {
    return 1;
  }
  print_held("signal_storm", {{"beside_the_storm", 88 * kSignals, kSignals}});
}
