// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/progress.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/chart_text.h"
#include "report/track_words.h"

namespace tidemark::demo {
namespace {

constexpr std::size_t kTitleColumns = 16;

std::string bar(double share) {
  constexpr std::size_t kColumns = 10;
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kColumns);
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(kColumns - full, '.'));
}

std::string place_of(const DemoPlace& place) {
  if (!place.step) {
    return fmt::format("{} loading", place.scenario->title);
  }
  return fmt::format("{} {} {}", place.scenario->title, bar(*place.step / place.scenario->steps),
                     place.footprint_bytes ? format_bytes(*place.footprint_bytes) : "?");
}

}  // namespace

std::string demo_opening(std::span<const DemoScenario> scenarios, std::size_t at_a_time) {
  const std::string jobs =
      scenarios.size() == 1
          ? "One training job with a known ground truth, watched like any other job"
          : fmt::format("{} training jobs with a known ground truth, watched like any other job",
                        scenarios.size());
  const std::string pairs = at_a_time > 1 && scenarios.size() > 1
                                ? fmt::format("{} run at a time. ", at_a_time)
                                : std::string();
  return fmt::format("{}: monitor, tracker, profiler.\n{}This takes about {}.\n\n", jobs, pairs,
                     format_duration(expected_seconds(scenarios, at_a_time)));
}

std::string demo_started(std::size_t number, std::size_t count, const DemoScenario& scenario) {
  return fmt::format("[{}/{}] {:<{}}  starts  {}", number, count, scenario.title, kTitleColumns,
                     scenario.about);
}

std::string demo_ended(std::size_t number, std::size_t count, const DemoScenario& scenario,
                       const DemoGrade& grade, double seconds, const DemoStyle& style) {
  const std::string outline = report::sparkline_text(grade.outline, style.glyphs);
  return fmt::format("[{}/{}] {:<{}}  {}{}{}{}, {}", number, count, scenario.title, kTitleColumns,
                     demo_mark(grade, style.colour), grade.has_run() ? "   " : "  ", outline,
                     (outline.empty() ? "" : "  ") + demo_finding(grade), format_duration(seconds));
}

std::string demo_places(std::span<const DemoPlace> places, std::size_t columns) {
  std::string text;
  for (const DemoPlace& place : places) {
    text += (text.empty() ? "  " : "   ") + place_of(place);
  }
  return shorten(text, columns);
}

}  // namespace tidemark::demo
