// SPDX-License-Identifier: Apache-2.0
// Asks for more than there is: the old blocks stay what they are.
#include <cerrno>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* stays() { return seen(std::malloc(640)); }
VICTIM_SITE bool cannot_grow(void* block, std::size_t bytes) {
  errno = 0;
  return std::realloc(block, bytes) == nullptr && errno == ENOMEM;
}

int main() {
  constexpr int kBlocks = 500;
  volatile std::size_t too_much = SIZE_MAX / 2 - 4096;  // the compiler must not see it
  for (int i = 0; i < kBlocks; ++i) {
    void* const block = stays();
    if (!cannot_grow(block, too_much) || !cannot_grow(block, too_much / 2)) {
      return 1;
    }
  }
  print_held("realloc_fails", {{"stays", 640 * kBlocks, kBlocks}, {"cannot_grow", 0, 0}});
}
