// SPDX-License-Identifier: Apache-2.0
#include "check/lines.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::check {
namespace {

using tracker::RankedLine;

constexpr std::size_t kMostLines = 5;
constexpr std::size_t kMostCallers = 5;
constexpr std::size_t kColumns = 100;

const report::ProfileReport* profile_of(const CheckResult& result) {
  return result.shown ? result.shown->profile() : nullptr;
}

CheckLine shown_line(const report::ProfileReport& report, const RankedLine& ranked) {
  CheckLine line;
  line.ranked = &ranked;
  line.stack = tracker::shown_stack(*report.run, report.ranking.sites[ranked.sites.front()].frames);
  line.at = tracker::find_line(line.stack, ranked.name);
  if (!line.at && !line.stack.frames.empty()) {
    line.at = 0;
  }
  return line;
}

std::vector<CheckLine> largest_lines(const report::ProfileReport& report) {
  std::vector<CheckLine> lines;
  for (const RankedLine& ranked : report.ranking.lines) {
    lines.push_back(shown_line(report, ranked));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const CheckLine& a, const CheckLine& b) {
    return a.ranked->live_bytes > b.ranked->live_bytes;
  });
  return lines;
}

std::string paragraph(const CheckLine& line) {
  std::string out =
      fmt::format("  {}\n    {}\n", place_text(line, kColumns - 2), figures_text(line));
  // What lies above the line is how it gets its memory.
  const std::size_t first = line.at.value_or(0) + 1;
  for (std::size_t i = first; i < std::min(line.stack.frames.size(), first + kMostCallers); ++i) {
    out += fmt::format("    by {}\n", tracker::frame_text(line.stack.frames[i], kColumns - 7));
  }
  return out;
}

}  // namespace

std::vector<CheckLine> growing_lines(const CheckResult& result) {
  std::vector<CheckLine> lines;
  if (const report::ProfileReport* const report = profile_of(result); report != nullptr) {
    for (const RankedLine* const ranked : report::growing_lines(*report)) {
      if (!is_suppressed(*report, *ranked, result.suppressed)) {
        lines.push_back(shown_line(*report, *ranked));
      }
    }
  }
  return lines;
}

std::string place_text(const CheckLine& line, std::size_t columns) {
  return line.at ? tracker::frame_text(*line.frame(), columns) : "an unknown place";
}

std::string figures_text(const CheckLine& line) {
  const RankedLine& ranked = *line.ranked;
  if (!ranked.grows()) {
    return fmt::format("holds {}", format_bytes(ranked.live_bytes));
  }
  std::string out = format_rate(ranked.growth_bytes_per_s, RateUnit::kSecond);
  if (ranked.growth_bytes_per_step) {
    out = fmt::format("{}, {}", format_rate(*ranked.growth_bytes_per_step, RateUnit::kStep), out);
  }
  // A process that is caught while it ends has grown by less than its lines, or shrunk.
  constexpr double kMoreThanAll = 1.1;
  const double share = ranked.share_of_growth.value_or(0.0);
  if (share > 0.0 && share <= kMoreThanAll) {
    out += fmt::format(", {} of the growth", format_percent(std::min(share, 1.0)));
  }
  if (ranked.sites.size() > 1) {
    out += fmt::format(", through {} call stacks", ranked.sites.size());
  }
  return out;
}

std::string check_lines(const CheckResult& result) {
  if (!result.shown || result.shown->tracing == nullptr) {
    return "";
  }
  const report::ProfileReport* const report = profile_of(result);
  if (report == nullptr) {
    return "  no process of the command could be traced\n";
  }
  std::vector<CheckLine> lines = growing_lines(result);
  std::string out;
  if (lines.empty()) {
    out = fmt::format(
        "  no line{} can be seen to grow: sample more often (--interval 50ms) or run it for "
        "longer.\n  Those that hold most:\n",
        result.suppressed.empty() ? "" : " that is not suppressed");
    lines = largest_lines(*report);
  }
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
    out += paragraph(lines[i]);
  }
  return out;
}

}  // namespace tidemark::check
