// SPDX-License-Identifier: Apache-2.0
// Two threads come to 32,768 call stacks. Most free their block at once, one in 20 keeps it.
#include <thread>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

constexpr unsigned kTurns = 15;  // of a path: each is one of two ways to the next
constexpr unsigned kPaths = 1U << kTurns;
constexpr unsigned kKeepOneIn = 20;

VICTIM_SITE void* keep() { return seen(std::malloc(100)); }
VICTIM_SITE void* pass() { return seen(std::malloc(60)); }

void* descend(unsigned path, unsigned turns, bool keeps);
VICTIM_SITE void* left(unsigned path, unsigned turns, bool keeps) {
  return seen(descend(path, turns, keeps));
}
VICTIM_SITE void* right(unsigned path, unsigned turns, bool keeps) {
  return seen(descend(path, turns, keeps));
}
void* descend(unsigned path, unsigned turns, bool keeps) {
  if (turns == 0) {
    return keeps ? keep() : pass();
  }
  return path % 2 == 0 ? left(path / 2, turns - 1, keeps) : right(path / 2, turns - 1, keeps);
}

void run(unsigned first) {
  for (unsigned path = first; path < kPaths; path += 2) {
    const bool keeps = path % kKeepOneIn == 0;
    void* const block = descend(path, kTurns, keeps);
    if (!keeps) {
      std::free(block);
    }
  }
}

int main() {
  std::thread other(run, 1);
  run(0);
  other.join();
  constexpr unsigned kKept = (kPaths + kKeepOneIn - 1) / kKeepOneIn;
  print_held("many_stacks", {{"keep", 100 * kKept, kKept}, {"pass", 0, 0}});
}
