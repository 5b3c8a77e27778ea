// SPDX-License-Identifier: Apache-2.0
// Fills its slots once and from then on only replaces what is in them.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

constexpr int kSlots = 2000;
void* g_slots[kSlots];

VICTIM_SITE void warm_up() {
  for (void*& slot : g_slots) {
    slot = seen(std::malloc(400));
  }
}
VICTIM_SITE void replace(int slot) {
  std::free(g_slots[slot]);
  g_slots[slot] = seen(std::malloc(400));
}

int main() {
  warm_up();
  for (int step = 0; step < 20000; ++step) {
    replace(step * 7 % (kSlots / 2));
  }
  constexpr std::uint64_t kHalf = kSlots / 2;
  print_held("plateau_after_warmup",
             {{"warm_up", 400 * kHalf, kHalf}, {"replace", 400 * kHalf, kHalf}});
}
