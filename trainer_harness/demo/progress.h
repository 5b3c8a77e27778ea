// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "trainer_harness/demo/grade.h"
#include "trainer_harness/demo/scenarios.h"
#include "trainer_harness/demo/table.h"

namespace tidemark::demo {

// Where a scenario is that runs.
struct DemoPlace {
  const DemoScenario* scenario = nullptr;
  std::optional<double> step;             // nullopt: it is still loading
  std::optional<double> footprint_bytes;  // of its tree
};

// What the user reads while the scenarios run: all of it is text without a line end, but for the
// first.
std::string demo_opening(std::span<const DemoScenario> scenarios, std::size_t at_a_time);
std::string demo_started(std::size_t number, std::size_t count, const DemoScenario& scenario);
std::string demo_ended(std::size_t number, std::size_t count, const DemoScenario& scenario,
                       const DemoGrade& grade, double seconds, const DemoStyle& style);
// One line for all that run, no longer than `columns`: "warm-up [####......] 312 MiB".
std::string demo_places(std::span<const DemoPlace> places, std::size_t columns);

}  // namespace tidemark::demo
