// SPDX-License-Identifier: Apache-2.0
// Thousands of short threads; each leaves one block behind.
#include <pthread.h>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* left_by_thread() { return seen(std::malloc(96)); }

void* run(void*) {
  for (std::size_t i = 0; i < 10; ++i) {
    std::free(seen(std::malloc(16 + 100 * i)));
  }
  left_by_thread();
  return nullptr;
}

int main() {
  constexpr int kThreads = 4000;
  constexpr int kAtOnce = 8;
  for (int i = 0; i < kThreads; i += kAtOnce) {
    pthread_t threads[kAtOnce];
    for (pthread_t& thread : threads) {
      pthread_create(&thread, nullptr, run, nullptr);
    }
    for (const pthread_t thread : threads) {
      pthread_join(thread, nullptr);
    }
  }
  print_held("thread_churn", {{"left_by_thread", 96 * kThreads, kThreads}});
}
