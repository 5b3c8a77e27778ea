// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::demo {

struct DemoOptions {
  std::vector<std::string> scenarios;  // names; empty: the usual ones, or all of them
  bool all = false;
  std::uint64_t seed = 1;
  bool json = false;
  std::string keep;     // folder for the run files; empty: they are removed
  std::string harness;  // the program; empty: the one beside our own
};

// `tidemark demo`: scenarios of the harness under monitor, tracker and profiler, ground truth and
// verdict side by side. 0: all verdicts are right; 1: one is wrong; 3: one could not be run.
int run_demo(const DemoOptions& options);

}  // namespace tidemark::demo
