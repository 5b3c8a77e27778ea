// SPDX-License-Identifier: Apache-2.0
// Keeps a lot at once, three times, and nothing in between.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void leak_a_table() {
  for (int i = 0; i < 400; ++i) {
    seen(std::calloc(5, 1000));
  }
}
VICTIM_SITE void use_and_drop() { std::free(seen(std::malloc(1000))); }

int main() {
  for (int step = 0; step < 3000; ++step) {
    if (step % 1000 == 0) {
      leak_a_table();
    }
    use_and_drop();
  }
  print_held("leak_step", {{"leak_a_table", 5000 * 1200, 1200}, {"use_and_drop", 0, 0}});
}
