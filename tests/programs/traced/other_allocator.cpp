// SPDX-License-Identifier: Apache-2.0
// Every entry of the allocator and of operator new; run beside allocators that bring their own.
#include <malloc.h>

#include <new>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

struct alignas(64) Wide {
  char bytes[128];
};

VICTIM_SITE void by_malloc() {
  if (::malloc_usable_size(seen(std::malloc(50))) < 50) {
    std::_Exit(2);
  }
}
VICTIM_SITE void by_calloc() { seen(std::calloc(3, 40)); }
VICTIM_SITE void by_memalign() { seen(::memalign(128, 300)); }
VICTIM_SITE void by_aligned_alloc() { seen(std::aligned_alloc(256, 512)); }
VICTIM_SITE void by_posix_memalign() {
  void* block = nullptr;
  if (::posix_memalign(&block, 64, 200) != 0) {
    std::_Exit(1);
  }
  seen(block);
}
VICTIM_SITE void by_valloc() { seen(::valloc(5000)); }
VICTIM_SITE void by_new() { seen(new long); }
VICTIM_SITE void by_new_array() { seen(new char[77]); }
VICTIM_SITE void by_nothrow() { seen(new (std::nothrow) char[33]); }
VICTIM_SITE void by_aligned_new() { seen(new Wide); }
VICTIM_SITE void by_strange_ways_freed() {
  delete seen(new long);
  delete[] seen(new char[100]);
  delete seen(new Wide);
  ::operator delete (seen(::operator new(10)), std::size_t{10});
  std::free(seen(::memalign(4096, 10)));
}

int main() {
  constexpr int kRounds = 200;
  for (int i = 0; i < kRounds; ++i) {
    by_malloc();
    by_calloc();
    by_memalign();
    by_aligned_alloc();
    by_posix_memalign();
    by_valloc();
    by_new();
    by_new_array();
    by_nothrow();
    by_aligned_new();
    by_strange_ways_freed();
  }
  print_held("other_allocator", {{"by_malloc", 50 * kRounds, kRounds},
                                 {"by_calloc", 120 * kRounds, kRounds},
                                 {"by_memalign", 300 * kRounds, kRounds},
                                 {"by_aligned_alloc", 512 * kRounds, kRounds},
                                 {"by_posix_memalign", 200 * kRounds, kRounds},
                                 {"by_valloc", 5000 * kRounds, kRounds},
                                 {"by_new", 8 * kRounds, kRounds},
                                 {"by_new_array", 77 * kRounds, kRounds},
                                 {"by_nothrow", 33 * kRounds, kRounds},
                                 {"by_aligned_new", 128 * kRounds, kRounds},
                                 {"by_strange_ways_freed", 0, 0}});
}
