// SPDX-License-Identifier: Apache-2.0
// Frees everything but the last block, so that the heap cannot shrink.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* fill() { return seen(std::malloc(2000)); }
VICTIM_SITE void* last() { return seen(std::malloc(24)); }

int main() {
  constexpr int kBlocks = 5000;
  static void* blocks[kBlocks];
  for (void*& block : blocks) {
    block = fill();
  }
  last();
  for (void* const block : blocks) {
    std::free(block);
  }
  print_held("freed_but_resident", {{"fill", 0, 0}, {"last", 24, 1}});
}
