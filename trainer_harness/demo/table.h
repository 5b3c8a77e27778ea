// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "report/chart_text.h"
#include "trainer_harness/demo/grade.h"
#include "trainer_harness/demo/scenarios.h"

namespace tidemark::demo {

inline constexpr std::size_t kDemoColumns = 100;

// Whether words may be coloured: only a terminal wants it.
enum class Colour { kNone, kAnsi };
struct DemoStyle {
  Colour colour = Colour::kNone;
  report::Glyphs glyphs = report::Glyphs::kAscii;
};

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

// "right", "WRONG", "FAILED".
std::string demo_mark(const DemoGrade& grade, Colour colour);

// One row per scenario, truth and verdict side by side; below it, what is wrong in words.
std::string demo_table(std::span<const DemoGrade> grades, Colour colour);

// The same as one JSON object with a line end, for programs; see docs/output.md.
std::string demo_json(std::span<const DemoScenario> scenarios, std::span<const DemoGrade> grades,
                      std::uint64_t seed);

// "leak, 513 KiB/step"; what was found in one scenario.
std::string demo_finding(const DemoGrade& grade);

}  // namespace tidemark::demo
