// SPDX-License-Identifier: Apache-2.0
// Large spikes that come back, as evaluations make them, and below them a leak that is small
// against their height.
#include <optional>
#include <vector>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  Pace pace;
  double base_mb = 64;
  double flat_steps = 100;
  double leak_mb = 0.25;  // at each step
  double period_steps = 40;
  double hold_steps = 8;
  double spike_mb = 120;
  parse_options(argc, argv, pace,
                {{"--base-mb", &base_mb},
                 {"--flat-steps", &flat_steps},
                 {"--leak-mb", &leak_mb},
                 {"--period-steps", &period_steps},
                 {"--hold-steps", &hold_steps},
                 {"--spike-mb", &spike_mb}});
  print_truth("spikes_over_leak", "leak", pace,
              {{"base_bytes", base_mb * kMegabyte},
               {"since_step", flat_steps},
               {"rate_bytes_per_step", leak_mb * kMegabyte},
               {"period_steps", period_steps},
               {"height_bytes", spike_mb * kMegabyte}});

  const Block base(base_mb);
  std::vector<Block> kept;
  std::optional<Block> spike;
  run_steps(pace, [&](long n) {
    const long phase = n % static_cast<long>(period_steps);
    if (phase == 0) {
      spike.emplace(spike_mb);
    } else if (phase == static_cast<long>(hold_steps)) {
      spike.reset();
    }
    if (static_cast<double>(n) > flat_steps) {
      kept.emplace_back(leak_mb);
    }
  });
}
