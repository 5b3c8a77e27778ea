// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::demo {

// A training job of the harness that the demo watches.
struct DemoScenario {
  std::string_view name;       // of its files, and on the command line
  std::string_view title;      // in the table
  std::string_view about;      // what the job does to memory
  std::string_view arguments;  // of `tidemark-harness train`, with blanks between them
  int steps = 0;
  bool is_usual = true;  // runs also when no name is given
};

// In the order in which they run.
std::span<const DemoScenario> demo_scenarios();
const DemoScenario* find_demo_scenario(std::string_view name);

// What starts it, with its ground truth written to `truth_file`.
std::vector<std::string> demo_command(const DemoScenario& scenario, const std::string& harness,
                                      const std::string& truth_file, std::uint64_t seed);

// How long one takes, loading libtorch included, on a machine that keeps pace.
double expected_seconds(const DemoScenario& scenario);
// How long all of them take when `at_a_time` run side by side.
double expected_seconds(std::span<const DemoScenario> scenarios, std::size_t at_a_time);

}  // namespace tidemark::demo
