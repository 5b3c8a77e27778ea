// SPDX-License-Identifier: Apache-2.0
// Exceptions by the million fly through functions that hold blocks.
#include <memory>
#include <stdexcept>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* kept_in_handler() { return seen(std::malloc(72)); }

[[gnu::noinline]] void throw_below(int depth) {
  const auto block = std::make_unique<char[]>(64);
  seen(block.get());
  if (depth == 0) {
    throw 42;
  }
  throw_below(depth - 1);
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
  std::uint64_t kept = 0;
  for (int i = 0; i < count; ++i) {
    try {
      throw_below(i % 3);
    } catch (const int) {
      if (i % 1000 == 0) {
        kept_in_handler();
        ++kept;
      }
    }
  }
  print_held("throw_through", {{"kept_in_handler", 72 * kept, kept}, {"throw_below", 0, 0}});
}
