// SPDX-License-Identifier: Apache-2.0
// Keeps a little at every step.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void leak_a_little() { seen(std::malloc(200)); }
VICTIM_SITE void use_and_drop() {
  std::free(seen(std::malloc(1000)));
  std::free(seen(static_cast<void*>(nullptr)));  // no block: nothing was freed
}

int main() {
  constexpr int kSteps = 3000;
  for (int i = 0; i < kSteps; ++i) {
    leak_a_little();
    use_and_drop();
  }
  print_held("leak_linear", {{"leak_a_little", 200 * kSteps, kSteps}, {"use_and_drop", 0, 0}});
}
