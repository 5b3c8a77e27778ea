// SPDX-License-Identifier: Apache-2.0
// Grows, shrinks and moves blocks in every way that realloc knows.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* start_small() { return seen(std::malloc(16)); }
VICTIM_SITE void* grow(void* block, std::size_t bytes) { return seen(std::realloc(block, bytes)); }
VICTIM_SITE void* grow_array(void* block, std::size_t count) {
  return seen(::reallocarray(block, count, 24));
}
VICTIM_SITE void* start_by_realloc() { return seen(std::realloc(nullptr, 48)); }

int main() {
  constexpr std::uint64_t kBlocks = 20;
  volatile std::size_t too_many = SIZE_MAX / 8;  // the compiler must not see it
  for (std::uint64_t n = 0; n < kBlocks; ++n) {
    void* block = start_small();
    for (std::size_t bytes = 32; bytes <= 1U << 20U; bytes *= 2) {
      block = grow(block, bytes);
    }
    grow(block, 5000);
    void* array = start_by_realloc();
    for (std::size_t count = 10; count <= 1000; count += 90) {
      array = grow_array(array, count);
    }
    void* gone = start_small();
    gone = grow(gone, 0);  // frees it, or (mimalloc) makes it as small as can be
    std::free(gone);
    if (::reallocarray(array, too_many, 24) != nullptr) {
      return 1;
    }
  }
  print_held("realloc_moves", {{"start_small", 0, 0},
                               {"grow", 5000 * kBlocks, kBlocks},
                               {"start_by_realloc", 0, 0},
                               {"grow_array", 24 * 1000 * kBlocks, kBlocks}});
}
