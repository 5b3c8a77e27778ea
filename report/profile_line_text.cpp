// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/profile_text.h"
#include "tracker/sites/frame_text.h"

// Lines, functions and native functions in words, and the rows of a call stack.
namespace tidemark::report {
namespace {

using tracker::Grouping;
using tracker::RankedLine;
using tracker::ShownFrame;
using tracker::ShownStack;

ShownStack stack_of(const ProfileReport& report, std::size_t site) {
  return tracker::shown_stack(*report.run, report.ranking.sites[site]);
}

// Whether the call stacks of a line leave it by different calls.
bool has_several_calls(const ProfileReport& report, const RankedLine& line) {
  std::set<std::string> calls;
  for (const std::size_t site : line.sites) {
    const ShownStack stack = stack_of(report, site);
    if (const auto at = tracker::find_line(stack, line.name)) {
      calls.insert(tracker::call_text(stack, *at));
    }
  }
  return calls.size() > 1;
}

// The lines that a function has.
std::size_t lines_of(const ProfileReport& report, const RankedLine& function) {
  const std::vector<RankedLine>& lines = report.ranking.lines;
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const RankedLine& line) {
        return std::find(function.sites.begin(), function.sites.end(), line.sites.front()) !=
               function.sites.end();
      }));
}

std::string function_text(const ProfileReport& report, const RankedLine& line,
                          std::size_t columns) {
  const ShownStack stack = stack_of(report, line.sites.front());
  const auto at = tracker::find_line(stack, line.name);
  const std::size_t lines = lines_of(report, line);
  if (!at || lines < 2) {
    return tracker::headline(stack, line.name, columns);
  }
  const ShownFrame& frame = stack.frames[*at];
  return shorten(fmt::format("{} in {} ({} lines)",
                             escape_text(tracker::python_function(frame.frame->function)),
                             escape_text(frame.place.empty() ? frame.library : frame.place), lines),
                 columns);
}

std::string row_text(const ProfileReport& report, const RankedLine& line, Grouping grouping,
                     std::string_view label, std::size_t columns) {
  const std::string front =
      fmt::format("{:<9}{:<7} {:>14} {:>9}  ", label, verdict_name(line.verdict),
                  growth_text(line.growth_bytes_per_s), format_bytes(line.live_bytes));
  return front + line_text(report, line, grouping, columns - front.size()) + '\n';
}

bool has_python(const ProfileReport& report, const RankedLine& line) {
  const ShownStack stack = stack_of(report, line.sites.front());
  return std::any_of(stack.frames.begin(), stack.frames.end(), [](const ShownFrame& frame) {
    return frame.frame->kind == FrameKind::kPython;
  });
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

std::string line_text(const ProfileReport& report, const RankedLine& line, std::size_t columns) {
  return line_text(report, line, report.by, columns);
}

std::string line_text(const ProfileReport& report, const RankedLine& line, Grouping grouping,
                      std::size_t columns) {
  if (grouping == Grouping::kFunction) {
    return function_text(report, line, columns);
  }
  const ShownStack stack = stack_of(report, line.sites.front());
  const auto at = tracker::find_line(stack, line.name);
  if (grouping == Grouping::kNative && at && !line.name.empty()) {
    return tracker::frame_text(stack.frames[*at], columns);
  }
  constexpr std::string_view kMore = " and more";
  std::string text = tracker::headline(stack, line.name, columns - kMore.size());
  const bool has_call = text.find(" calling ") != std::string::npos;
  return has_call && has_several_calls(report, line) ? text + std::string(kMore)
                                                     : tracker::headline(stack, line.name, columns);
}

std::vector<StackRow> stack_rows(const ShownStack& stack) {
  constexpr std::size_t kHead = 2;
  constexpr std::size_t kBefore = 1;  // the user's own line
  constexpr std::size_t kLongRun = 4;
  const std::vector<ShownFrame>& frames = stack.frames;
  const std::size_t own = stack.own_line.value_or(0);
  std::vector<StackRow> rows;
  for (std::size_t i = 0; i < frames.size();) {
    if (i == kHead && own > kHead + kBefore + 1) {
      const auto start = frames.begin() + static_cast<std::ptrdiff_t>(i);
      const auto end = std::find_if(start, start + static_cast<std::ptrdiff_t>(own - kBefore - i),
                                    tracker::is_thread_start);
      rows.push_back({i, i + static_cast<std::size_t>(end - start), true});
      i = rows.back().end;
      continue;
    }
    std::size_t end = i;
    while (end < frames.size() && !frames[end].is_own && end != own &&
           !frames[end].library.empty() && frames[end].library == frames[i].library) {
      ++end;
    }
    const bool is_import = frames[i].library == "importlib" && end > i + 1;
    const bool is_long = i > own && end - i >= kLongRun && end > i;
    if (!is_import) {  // of others the first is shown: it calls the user's code
      rows.push_back({i, i + 1, false});
      ++i;
    }
    if (is_import || is_long) {
      rows.push_back({i, end, true});
      i = end;
    }
  }
  return rows;
}

std::string folded_text(const ShownStack& stack, const StackRow& row) {
  constexpr std::size_t kMostNames = 3;
  std::vector<std::string> names;
  for (std::size_t i = row.begin; i < row.end; ++i) {
    const std::string& library = stack.frames[i].library;
    std::string name = library.empty() ? "your code" : escape_text(library);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  if (names.size() > kMostNames) {
    names.resize(kMostNames - 1);
    names.emplace_back("others");
  }
  return fmt::format("... {} of {}", format_count(row.end - row.begin, "frame"), join(names));
}

std::string groups_text(const ProfileReport& report, const ProfileStyle& style) {
  constexpr std::size_t kMostRows = 3;
  std::string out;
  const auto add = [&](Grouping grouping, std::string_view label, auto is_worth_it) {
    std::size_t rows = 0;
    for (const RankedLine& line : report.ranking.by(grouping)) {
      if (rows < kMostRows && grouping != report.by && line.grows() && is_seen_long_enough(line) &&
          is_worth_it(line)) {
        out += row_text(report, line, grouping, rows++ == 0 ? label : "", style.columns);
      }
    }
  };
  if (report.by == Grouping::kLine) {
    add(Grouping::kFunction, "function",
        [&](const RankedLine& line) { return lines_of(report, line) > 1; });
  }
  add(Grouping::kNative, "native",
      [&](const RankedLine& line) { return !line.name.empty() && has_python(report, line); });
  return out;
}

}  // namespace tidemark::report
