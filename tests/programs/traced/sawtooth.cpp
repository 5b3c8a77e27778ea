// SPDX-License-Identifier: Apache-2.0
// Collects and drops all of it, again and again; ends in the middle of a tooth.
#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* collect() { return seen(std::malloc(700)); }

int main() {
  constexpr int kTooth = 1000;
  static void* tooth[kTooth];
  int used = 0;
  for (int step = 0; step < 30 * kTooth + kTooth / 2; ++step) {
    if (used == kTooth) {
      while (used > 0) {
        std::free(tooth[--used]);
      }
    }
    tooth[used++] = collect();
  }
  print_held("sawtooth", {{"collect", 700 * (kTooth / 2), kTooth / 2}});
}
