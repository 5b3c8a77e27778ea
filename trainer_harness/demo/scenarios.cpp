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
    DemoScenario{"warmup", "warm-up", "a cache fills during the first epoch, then stays as it is",
                 "warmup", 300},
    DemoScenario{"spikes", "spikes", "each evaluation loads its whole data set, then frees it",
                 "spikes", 300},
    DemoScenario{"leak-collator", "leak: collator",
                 "the collator keeps every batch from step 100 on",
                 "leak --cause collator --from-step 100 --mb-per-step 0.5", 400},
    DemoScenario{"leak-native", "leak: native", "C code loses a malloc, three calls deep",
                 "leak --cause native --from-step 100 --mb-per-step 0.5", 400},
    DemoScenario{"staircase", "staircase", "each checkpoint keeps a copy of the model", "staircase",
                 400},
    DemoScenario{"compile-workers", "compile workers", "a pool of idle workers that share memory",
                 "compile-workers --workers 8", 300},
    DemoScenario{"wrapper", "wrapper trap", "a leak below an idle wrapper process",
                 "leak --cause autograd --from-step 100 --mb-per-step 0.5 --wrapper", 400},
    // Only by name or with --all.
    DemoScenario{"steady", "steady", "nothing grows", "steady", 400, false},
    DemoScenario{"leak-autograd", "leak: autograd", "every loss is kept with its graph",
                 "leak --cause autograd", 400, false},
    DemoScenario{"leak-optimizer", "leak: optimizer", "every step adds optimizer state",
                 "leak --cause optimizer", 400, false},
    DemoScenario{"leak-shm", "leak: shm", "segments in /dev/shm that nobody unlinks",
                 "leak --cause shm", 400, false},
    DemoScenario{"leak-pinned", "leak: pinned", "pinned host buffers are kept",
                 "leak --cause pinned", 400, false},
    DemoScenario{"sawtooth", "sawtooth", "reference cycles, collected every 20 steps", "sawtooth",
                 400, false},
    DemoScenario{"fragmentation", "fragmentation", "freed blocks whose pages the allocator keeps",
                 "fragmentation", 400, false},
    DemoScenario{"dataloader-cow", "dataloader-cow", "forked workers copy a shared dataset",
                 "dataloader-cow", 400, false},
    DemoScenario{"job1", "job1", "a recorded job: warm-up to step 90", "--replay job1", 240, false},
    DemoScenario{"job2", "job2", "a recorded job: warm-up to step 90", "--replay job2", 180, false},
    DemoScenario{"valspike", "valspike", "a recorded job: spikes at each validation",
                 "--replay valspike", 240, false},
    // As long as they were recorded, a leak cannot be told from a warm-up; so they go on.
    DemoScenario{"slowleak", "slowleak", "a recorded job: a slow leak below spikes",
                 "--replay slowleak", 480, false},
    DemoScenario{"catastrophic", "catastrophic", "a recorded job: a leak in jumps",
                 "--replay catastrophic", 400, false},
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
                                      const std::string& truth_file, std::uint64_t seed) {
  std::vector<std::string> command{harness, "train"};
  for (const std::string_view argument : split(scenario.arguments, ' ')) {
    command.emplace_back(argument);
  }
  for (const std::string& argument :
       {std::string("--steps"), std::to_string(scenario.steps), std::string("--step-time"),
        std::string("50ms"), std::string("--seed"), std::to_string(seed), std::string("--truth"),
        truth_file}) {
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
