// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/scenarios.h"

#include <algorithm>
#include <array>

#include "common/text.h"

namespace tidemark::demo {
namespace {

constexpr double kStepSeconds = 0.05;
constexpr double kStartSeconds = 3.0;

// The automatic allowance calls a rise a leak when memory had settled before it and the rise has
// lasted for more than 200 steps: hence 100 calm steps and 300 that leak.
constexpr std::array kScenarios{
    DemoScenario{"warmup", "warm-up", "a cache fills during the first epoch, then stands still",
                 "warmup", 300},
    DemoScenario{"spikes", "spikes", "each evaluation loads its whole set, and frees it", "spikes",
                 300},
    DemoScenario{"leak-collator", "leak: collator", "the collator keeps every batch, from step 100",
                 "leak --cause collator --from-step 100 --mb-per-step 0.5", 400},
    DemoScenario{"leak-native", "leak: native", "C code loses a malloc, three calls deep",
                 "leak --cause native --from-step 100 --mb-per-step 0.5", 400},
    DemoScenario{"staircase", "staircase", "each checkpoint keeps a copy of the model", "staircase",
                 400},
    DemoScenario{"compile-workers", "compile workers", "a pool of idle workers that share memory",
                 "compile-workers --workers 8", 300},
    DemoScenario{"wrapper", "wrapper trap", "a leak below a wrapper that does nothing",
                 "leak --cause autograd --from-step 100 --mb-per-step 0.5 --wrapper", 400},
};

}  // namespace

std::span<const DemoScenario> demo_scenarios() { return kScenarios; }

const DemoScenario* find_demo_scenario(std::string_view name) {
  const auto found =
      std::find_if(kScenarios.begin(), kScenarios.end(),
                   [&](const DemoScenario& scenario) { return scenario.name == name; });
  return found == kScenarios.end() ? nullptr : &*found;
}

std::vector<std::string> demo_command(const DemoScenario& scenario, const std::string& harness,
                                      const std::string& truth_file) {
  std::vector<std::string> command{harness, "train"};
  for (const std::string_view argument : split(scenario.arguments, ' ')) {
    command.emplace_back(argument);
  }
  for (const std::string& argument :
       {std::string("--steps"), std::to_string(scenario.steps), std::string("--step-time"),
        std::string("50ms"), std::string("--truth"), truth_file}) {
    command.push_back(argument);
  }
  return command;
}

double expected_seconds(const DemoScenario& scenario) {
  return kStartSeconds + kStepSeconds * scenario.steps;
}

double expected_seconds(std::span<const DemoScenario> scenarios, std::size_t at_a_time) {
  std::vector<double> ends(std::max<std::size_t>(1, at_a_time), 0.0);
  for (const DemoScenario& scenario : scenarios) {
    *std::min_element(ends.begin(), ends.end()) += expected_seconds(scenario);
  }
  return *std::max_element(ends.begin(), ends.end());
}

}  // namespace tidemark::demo
