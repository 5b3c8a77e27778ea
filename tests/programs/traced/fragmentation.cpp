// SPDX-License-Identifier: Apache-2.0
// Leaves a small block between every two holes: little is live, much is resident.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* pin() { return seen(std::malloc(40)); }
VICTIM_SITE void* hole() { return seen(std::malloc(3000)); }

int main() {
  constexpr int kPairs = 5000;
  static void* holes[kPairs];
  for (void*& block : holes) {
    block = hole();
    pin();
  }
  for (void* const block : holes) {
    std::free(block);
  }
  print_held("fragmentation", {{"pin", 40 * kPairs, kPairs}, {"hole", 0, 0}});
}
