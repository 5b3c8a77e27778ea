// SPDX-License-Identifier: Apache-2.0
// One thread lets the kernel move its mappings while others take the places that become free.
#include <sys/mman.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 4;
constexpr int kRounds = 3000;

VICTIM_SITE void* map_here() {
  return ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
}
VICTIM_SITE void* map_there() {
  return ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
}
VICTIM_SITE void* move_away(void* at) {
  return ::mremap(at, kPages * kPage, 2 * kPages * kPage, MREMAP_MAYMOVE);
}

// Keeps the last few mappings of `map`.
void take_places(const std::atomic<bool>& stop, std::atomic<std::uint64_t>& kept) {
  constexpr std::size_t kKept = 8;
  std::vector<void*> mine(kKept);
  for (std::size_t i = 0; !stop.load(); ++i) {
    void*& place = mine[i % kKept];
    if (place != nullptr) {
      ::munmap(place, kPages * kPage);
    }
    place = map_there();
  }
  for (void* const place : mine) {
    kept += place != nullptr ? 1U : 0U;
  }
}

int main() {
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> kept = 0;
  std::vector<std::thread> takers;
  for (int i = 0; i < 2; ++i) {
    takers.emplace_back(take_places, std::cref(stop), std::ref(kept));
  }
  std::uint64_t moved = 0;
  void* last = nullptr;
  for (int i = 0; i < kRounds; ++i) {
    if (last != nullptr) {
      ::munmap(last, 2 * kPages * kPage);
    }
    last = move_away(map_here());
    if (last == MAP_FAILED || ::mremap(last, kPage, 2 * kPage, 0x40000000) != MAP_FAILED) {
      return 1;
    }
    moved = 1;
  }
  stop = true;
  for (std::thread& taker : takers) {
    taker.join();
  }
  print_held("mremap_race", {{"map_here", 0, 0, "map"},
                             {"move_away", moved * 2 * kPages * kPage, moved, "map"},
                             {"map_there", kept * kPages * kPage, kept, "map"}});
}
