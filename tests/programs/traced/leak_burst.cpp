// SPDX-License-Identifier: Apache-2.0
// Allocates in bursts and forgets a tenth of each.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void burst() {
  constexpr int kBlocks = 1000;
  static void* blocks[kBlocks];
  for (void*& block : blocks) {
    block = seen(std::malloc(300));
  }
  for (int i = 0; i < kBlocks; ++i) {
    if (i % 10 != 0) {
      std::free(blocks[i]);
    }
  }
}

int main() {
  for (int i = 0; i < 20; ++i) {
    burst();
  }
  print_held("leak_burst", {{"burst", 300 * 2000, 2000}});
}
