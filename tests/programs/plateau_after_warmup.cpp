// SPDX-License-Identifier: Apache-2.0
// Grows by the same amount at each of its first steps, as straight as any leak, then never again.
#include <vector>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  Pace pace;
  double base_mb = 64;
  double grow_steps = 120;
  double grow_mb = 1;  // at each of them
  parse_options(argc, argv, pace,
                {{"--base-mb", &base_mb}, {"--grow-steps", &grow_steps}, {"--grow-mb", &grow_mb}});
  print_truth("plateau_after_warmup", "warmup", pace,
              {{"base_bytes", base_mb * kMegabyte},
               {"settled_step", grow_steps},
               {"settled_bytes", (base_mb + grow_steps * grow_mb) * kMegabyte},
               {"rate_bytes_per_step", grow_mb * kMegabyte}});

  const Block base(base_mb);
  std::vector<Block> kept;
  run_steps(pace, [&](long n) {
    if (static_cast<double>(n) <= grow_steps) {
      kept.emplace_back(grow_mb);
    }
  });
}
