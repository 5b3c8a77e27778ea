// SPDX-License-Identifier: Apache-2.0
// Stands still for the first steps, then keeps a little more at every step, for ever.
#include <vector>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  Pace pace;
  double base_mb = 64;
  double flat_steps = 100;
  double leak_mb = 0.5;  // at each step
  parse_options(argc, argv, pace,
                {{"--base-mb", &base_mb}, {"--flat-steps", &flat_steps}, {"--leak-mb", &leak_mb}});
  print_truth("leak_linear", "leak", pace,
              {{"base_bytes", base_mb * kMegabyte},
               {"since_step", flat_steps},
               {"rate_bytes_per_step", leak_mb * kMegabyte}});

  const Block base(base_mb);
  std::vector<Block> kept;
  run_steps(pace, [&](long n) {
    if (static_cast<double>(n) > flat_steps) {
      kept.emplace_back(leak_mb);
    }
  });
}
