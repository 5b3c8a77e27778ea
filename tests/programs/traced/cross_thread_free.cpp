// SPDX-License-Identifier: Apache-2.0
// One thread allocates, another one frees all but a few.
#include <atomic>
#include <thread>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* produce() { return seen(std::malloc(160)); }

int main() {
  constexpr int kBlocks = 50000;
  constexpr int kRing = 64;
  static std::atomic<void*> ring[kRing];
  std::thread consumer([] {
    for (int i = 0; i < kBlocks; ++i) {
      void* block = nullptr;
      while ((block = ring[i % kRing].exchange(nullptr)) == nullptr) {
        std::this_thread::yield();
      }
      if (i % 50 != 0) {
        std::free(block);
      }
    }
  });
  for (int i = 0; i < kBlocks; ++i) {
    void* const block = produce();
    while (ring[i % kRing].load() != nullptr) {
      std::this_thread::yield();
    }
    ring[i % kRing].store(block);
  }
  consumer.join();
  print_held("cross_thread_free", {{"produce", 160 * kBlocks / 50, kBlocks / 50}});
}
