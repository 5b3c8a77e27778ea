// SPDX-License-Identifier: Apache-2.0
// A cache that drops its oldest entry once it is full.
#include <deque>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE char* load_entry() { return seen(new char[900]); }

int main() {
  constexpr std::uint64_t kCap = 1500;
  std::deque<char*> cache;
  for (int i = 0; i < 30000; ++i) {
    cache.push_back(load_entry());
    if (cache.size() > kCap) {
      delete[] cache.front();
      cache.pop_front();
    }
  }
  print_held("cache_with_cap", {{"load_entry", 900 * kCap, kCap}});
}
