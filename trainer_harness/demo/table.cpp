// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/table.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "common/json_writer.h"
#include "common/text.h"
#include "common/units.h"
#include "report/chart_text.h"

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

constexpr std::size_t kCells = 5;  // the mark comes after them
constexpr std::string_view kGap = "  ";
constexpr std::size_t kMarkColumns = 6;
constexpr std::string_view kNone = "-";
using Row = std::array<std::string, kCells>;

std::string verdict_cell(const std::optional<tracker::Verdict>& verdict) {
  return std::string(verdict ? tracker::verdict_name(*verdict) : kNone);
}

// "512 KiB / 515 KiB"
std::string rate_cell(const DemoGrade& grade) {
  const auto text = [](const std::optional<double>& bytes) {
    return bytes ? format_bytes(*bytes) : std::string(kNone);
  };
  if (!grade.true_bytes_per_step && !grade.measured_bytes_per_step) {
    return std::string(kNone);
  }
  return fmt::format("{} / {}", text(grade.true_bytes_per_step),
                     text(grade.measured_bytes_per_step));
}

// A source line without its folders; of a long one the end is kept, which has the number.
std::string source_line(const std::string& line, std::size_t columns) {
  constexpr std::string_view kCut = "...";
  const std::string text = escape_text(basename_of(line));
  if (text.size() <= columns) {
    return text.empty() ? std::string(kNone) : text;
  }
  std::size_t from = text.size() - columns + kCut.size();
  while (from < text.size() && utf8_sequence_length(std::string_view(text).substr(from)) == 0) {
    ++from;
  }
  return std::string(kCut) + text.substr(from);
}

// "collator.cpp:42 / same", "/ none" where somebody looked in vain, "/ -" where nobody did.
std::string line_cell(const DemoGrade& grade) {
  constexpr std::size_t kLongest = 32;
  const std::string found = grade.found_line.value_or("");
  if (grade.true_line.empty() && found.empty()) {
    return std::string(kNone);
  }
  if (found.empty()) {
    return fmt::format("{} / {}", source_line(grade.true_line, kLongest),
                       grade.found_line ? "none" : kNone);
  }
  if (basename_of(grade.true_line) == basename_of(found)) {
    return source_line(grade.true_line, kLongest) + " / same";
  }
  return fmt::format("{} / {}", source_line(grade.true_line, kLongest / 2),
                     source_line(found, kLongest / 2));
}

Row row_of(const DemoGrade& grade) {
  return {escape_text(grade.scenario), verdict_cell(grade.truth), verdict_cell(grade.verdict),
          rate_cell(grade), line_cell(grade)};
}

std::string line_of(const Row& row, const std::array<std::size_t, kCells>& widths,
                    std::string_view mark) {
  std::string line;
  for (std::size_t i = 0; i < kCells; ++i) {
    line += fmt::format("{:<{}}{}", row[i], widths[i], kGap);
  }
  line += mark;
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

struct Side {
  std::optional<tracker::Verdict> verdict;
  std::optional<double> bytes_per_step;
  std::optional<double> plateau_step;
  std::optional<double> growth_bytes;
  std::optional<std::string> line;
};

void add_side(JsonWriter& json, std::string_view name, const Side& side) {
  json.key(name).begin_object();
  json.field("verdict",
             side.verdict ? std::optional(tracker::verdict_name(*side.verdict)) : std::nullopt);
  json.field("bytes_per_step", side.bytes_per_step).field("plateau_step", side.plateau_step);
  json.field("growth_bytes", side.growth_bytes).field("line", side.line).end_object();
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

std::string demo_json(std::span<const DemoScenario> scenarios, std::span<const DemoGrade> grades,
                      std::uint64_t seed) {
  JsonWriter json;
  json.begin_object().field("schema", 1).field("seed", seed).key("scenarios").begin_array();
  for (std::size_t i = 0; i < grades.size(); ++i) {
    const DemoGrade& grade = grades[i];
    json.begin_object().field("name", scenarios[i].name).field("ran", grade.has_run());
    json.field("right", grade.is_right());
    json.field("problem", grade.problem.empty() ? std::nullopt : std::optional(grade.problem));
    add_side(
        json, "truth",
        {grade.truth, grade.true_bytes_per_step, grade.true_plateau_step, grade.true_growth_bytes,
         grade.true_line.empty() ? std::nullopt : std::optional(grade.true_line)});
    add_side(json, "found",
             {grade.verdict, grade.measured_bytes_per_step, grade.measured_plateau_step,
              grade.measured_growth_bytes, grade.found_line});
    json.key("advice").begin_array();
    for (const std::string_view id : grade.advice) {
      json.value(id);
    }
    json.end_array().end_object();
  }
  return json.end_array().end_object().take() + "\n";
}

std::string demo_mark(const DemoGrade& grade, Colour colour) {
  const std::string_view word = !grade.has_run() ? "FAILED" : grade.is_right() ? "right" : "WRONG";
  if (colour == Colour::kNone) {
    return std::string(word);
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", grade.is_right() ? "32" : "1;31", word);
}

std::string demo_finding(const DemoGrade& grade) {
  if (!grade.has_run()) {
    return grade.problem;
  }
  std::string text(grade.verdict ? tracker::verdict_name(*grade.verdict) : "no verdict");
  if (grade.measured_bytes_per_step) {
    text += fmt::format(", {}/step", format_bytes(*grade.measured_bytes_per_step));
  }
  return text;
}

std::string demo_table(std::span<const DemoGrade> grades, Colour colour) {
  const Row heads{"", "", "", "RATE PER STEP", "LEAKING LINE"};
  const Row subheads{"SCENARIO", "TRUTH", "VERDICT", "TRUE / MEASURED", "TRUE / FOUND"};
  std::vector<Row> rows;
  std::array<std::size_t, kCells> widths{};
  for (const DemoGrade& grade : grades) {
    rows.push_back(row_of(grade));
  }
  for (std::size_t i = 0; i < kCells; ++i) {
    widths[i] = std::max(heads[i].size(), subheads[i].size());
    for (const Row& row : rows) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text = line_of(heads, widths, "") + line_of(subheads, widths, "");
  std::size_t columns = kMarkColumns + kCells * kGap.size();
  for (const std::size_t width : widths) {
    columns += width;
  }
  text += std::string(std::min(columns, kDemoColumns), '-') + '\n';
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += line_of(rows[i], widths, demo_mark(grades[i], colour));
  }
  for (const DemoGrade& grade : grades) {
    if (!grade.problem.empty()) {
      text += '\n' + wrap_text(escape_text(grade.scenario) + ": ", grade.problem, kDemoColumns);
    }
  }
  return text;
}

}  // namespace tidemark::demo
