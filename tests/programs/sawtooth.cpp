// SPDX-License-Identifier: Apache-2.0
// Collects a little at each step and drops all of it at the end of each period: the ceiling is far
// above the floor, and the floor does not move.
#include <vector>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  Pace pace;
  double base_mb = 64;
  double period_steps = 40;
  double tooth_mb = 100;
  parse_options(
      argc, argv, pace,
      {{"--base-mb", &base_mb}, {"--period-steps", &period_steps}, {"--tooth-mb", &tooth_mb}});
  print_truth("sawtooth", "spikes", pace,
              {{"base_bytes", base_mb * kMegabyte},
               {"period_steps", period_steps},
               {"height_bytes", tooth_mb * kMegabyte}});

  const Block base(base_mb);
  std::vector<Block> tooth;
  run_steps(pace, [&](long n) {
    if (n % static_cast<long>(period_steps) == 0) {
      tooth.clear();
    } else {
      tooth.emplace_back(tooth_mb / period_steps);
    }
  });
}
