// SPDX-License-Identifier: Apache-2.0
#include "check/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/track_words.h"
#include "tracker/sites/frame_text.h"

namespace tidemark::check {
namespace {

using tracker::BudgetDoubt;
using tracker::BudgetKind;
using tracker::BudgetRow;
using tracker::BudgetState;
using tracker::BudgetUnit;
using tracker::RankedLine;

bool is_rate(const BudgetRow& row) {
  return row.unit == BudgetUnit::kBytesPerSecond || row.unit == BudgetUnit::kBytesPerStep;
}

std::string figure_text(const BudgetRow& row, double value) {
  switch (row.unit) {
    case BudgetUnit::kBytes:
      return format_bytes(value);
    case BudgetUnit::kBytesPerSecond:
      return format_rate(value, RateUnit::kSecond);
    case BudgetUnit::kBytesPerStep:
      return format_rate(value, RateUnit::kStep);
    case BudgetUnit::kCount:
      return fmt::format("{:.0f}", value);
  }
  return "?";
}

const BudgetRow* first_of(const CheckResult& result, BudgetState state) {
  const auto found = std::find_if(result.rows.begin(), result.rows.end(),
                                  [&](const BudgetRow& row) { return row.state == state; });
  return found == result.rows.end() ? nullptr : &*found;
}

std::ptrdiff_t count_of(const CheckResult& result, BudgetState state) {
  return std::count_if(result.rows.begin(), result.rows.end(),
                       [&](const BudgetRow& row) { return row.state == state; });
}

// Of a check that grows too fast; "" when that is not known.
std::string line_that_grows(const CheckResult& result) {
  constexpr std::size_t kColumns = 80;
  const bool grows = std::any_of(result.rows.begin(), result.rows.end(), [](const BudgetRow& row) {
    return row.state == BudgetState::kExceeded && is_about_growth(row);
  });
  const std::vector<CheckLine> lines = grows ? growing_lines(result) : std::vector<CheckLine>();
  return lines.empty() || !lines.front().at ? "" : place_text(lines.front(), kColumns);
}

std::string fail_text(const CheckResult& result) {
  const BudgetRow* const row = first_of(result, BudgetState::kExceeded);
  if (row == nullptr) {
    return "";
  }
  const std::ptrdiff_t more = count_of(result, BudgetState::kExceeded) - 1;
  std::string text = row_text(*row);
  if (more > 0) {
    text += "; and " + format_count(static_cast<std::uint64_t>(more), "more budget");
  }
  if (const std::string line = line_that_grows(result); !line.empty()) {
    text += "; grows most: " + line;
  }
  if (result.spec.repeat > 1 && result.runs > 1) {
    text += fmt::format("; in each of {} runs", result.runs);
  }
  return text;
}

// Growth that its budget allows; nullptr: there is none.
const BudgetRow* allowed_growth(const CheckResult& result) {
  const auto found = std::find_if(result.rows.begin(), result.rows.end(), [](const BudgetRow& row) {
    return row.kind == BudgetKind::kGrowth && row.state == BudgetState::kWithin && row.measured &&
           row.limit;
  });
  return found == result.rows.end() ? nullptr : &*found;
}

std::string pass_text(const CheckResult& result) {
  std::string text = "within " + format_count(result.rows.size(), "budget");
  if (const std::ptrdiff_t suppressed = count_of(result, BudgetState::kSuppressed);
      suppressed > 0) {
    text += fmt::format(", {} only because of a suppression", suppressed);
  }
  if (!result.shown || !result.shown->track.verdict) {
    return text;
  }
  const tracker::SeriesVerdict& reading = result.shown->track.verdict->answer().series;
  if (reading.verdict < tracker::Verdict::kGrowing) {
    const std::string detectable = report::detectable_text(reading);
    return text + (detectable.empty() ? "" : "; " + detectable);
  }
  if (const BudgetRow* const row = allowed_growth(result)) {
    const std::string_view verb = reading.verdict == tracker::Verdict::kLeak ? "leaks" : "grows";
    const std::string allowed = fmt::format("{} {}, the budget allows {}", verb,
                                            figure_text(*row, *row->measured), limit_text(*row));
    return result.rows.size() == 1 ? allowed : fmt::format("{}; {}", allowed, text);
  }
  return text;
}

std::string commit_text(const HistoryChange& change) {
  constexpr std::size_t kShort = 12;
  const std::string commit = escape_text(change.commit).substr(0, kShort);
  return commit.empty() ? escape_text(change.time)
                        : fmt::format("{} ({})", commit, escape_text(change.time));
}

constexpr std::size_t kMostLines = 5;
constexpr std::size_t kMostCallers = 5;
constexpr std::size_t kLineTextColumns = 100;

const report::ProfileReport* profile_of(const CheckResult& result) {
  return result.shown ? result.shown->profile() : nullptr;
}

CheckLine shown_line(const report::ProfileReport& report, const RankedLine& ranked) {
  CheckLine line;
  line.ranked = &ranked;
  line.stack = tracker::shown_stack(*report.run, report.ranking.sites[ranked.sites.front()]);
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
      fmt::format("  {}\n    {}\n", place_text(line, kLineTextColumns - 2), figures_text(line));
  // What lies above the line is how it gets its memory.
  const std::size_t first = line.at.value_or(0) + 1;
  for (std::size_t i = first; i < std::min(line.stack.frames.size(), first + kMostCallers); ++i) {
    out +=
        fmt::format("    by {}\n", tracker::frame_text(line.stack.frames[i], kLineTextColumns - 7));
  }
  return out;
}

}  // namespace

std::string_view status_word(CheckStatus status) {
  static constexpr std::array<std::string_view, 4> kWords{"PASS", "CANNOT TELL", "FAIL", "ERROR"};
  return kWords[static_cast<std::size_t>(status)];
}

std::string_view state_word(BudgetState state) {
  static constexpr std::array<std::string_view, 4> kWords{"ok", "suppressed", "cannot tell",
                                                          "EXCEEDED"};
  return kWords[static_cast<std::size_t>(state)];
}

std::string measured_text(const BudgetRow& row) {
  if (!row.measured) {
    return row.doubt == BudgetDoubt::kNone || row.doubt == BudgetDoubt::kInterrupted ? "none seen"
                                                                                     : "unknown";
  }
  std::string text = figure_text(row, *row.measured);
  if (row.low && row.high) {
    text += fmt::format(" ({} to {})", figure_text(row, *row.low), figure_text(row, *row.high));
  }
  return text;
}

std::string limit_text(const BudgetRow& row) {
  if (!row.limit) {
    return "no leak";
  }
  return is_rate(row) && *row.limit <= 0.0 ? "0" : figure_text(row, *row.limit);
}

std::string row_text(const BudgetRow& row) {
  const std::string_view name = budget_name(row.kind);
  if (row.state == BudgetState::kExceeded && !row.limit) {
    return fmt::format("{}: leak, {}", name, measured_text(row));
  }
  if (row.state != BudgetState::kExceeded) {
    return fmt::format("{}: {}, limit {}", name, measured_text(row), limit_text(row));
  }
  // Rounded, both may be "1.00 MiB/step".
  const bool is_close = row.measured && figure_text(row, *row.measured) == limit_text(row);
  const std::string excess = is_close && *row.measured > *row.limit
                                 ? figure_text(row, *row.measured - *row.limit) + ' '
                                 : "";
  return fmt::format("{}: {}, {}more than {}", name, measured_text(row), excess, limit_text(row));
}

std::string doubt_text(const BudgetRow& row) {
  std::string text;
  switch (row.doubt) {
    case BudgetDoubt::kNone:
      return "";
    case BudgetDoubt::kNoSample:
      return row.kind >= BudgetKind::kGpuGrowth && row.kind <= BudgetKind::kGpuRetained
                 ? "no memory of a GPU was seen"
                 : "nothing was measured: the command ended before the first samples";
    case BudgetDoubt::kStepsUnknown:
      return "the budget counts steps, and too few are known here";
    case BudgetDoubt::kInterrupted:
      return "it was stopped before its end";
    case BudgetDoubt::kTooFew:
      text = "too few samples";
      break;
    case BudgetDoubt::kStillGrowing:
      text = "it still grows, and warm-up explains that as well as a leak";
      break;
  }
  const std::string needs = row.needs ? needs_text(*row.needs) : "";
  return needs.empty() ? text : fmt::format("{}; it needs {} to decide", text, needs);
}

std::string answer_line(const CheckResult& result) {
  switch (result.status) {
    case CheckStatus::kPass:
      return pass_text(result);
    case CheckStatus::kFail:
      return fail_text(result);
    case CheckStatus::kUndetermined: {
      const BudgetRow* const row = first_of(result, BudgetState::kUndetermined);
      return row == nullptr ? "it was stopped before its end"
                            : fmt::format("{}: {}", budget_name(row->kind), doubt_text(*row));
    }
    case CheckStatus::kError:
      break;
  }
  const std::string too_much = fail_text(result);
  return too_much.empty() ? result.problem : fmt::format("{}; {}", result.problem, too_much);
}

std::vector<std::string> left_texts(const LeftBehind& left) {
  constexpr std::size_t kMost = 10;
  std::vector<std::string> texts;
  for (const Stray& stray : left.strays) {
    if (texts.size() == kMost) {
      texts.push_back(fmt::format("and {} more processes", left.strays.size() - kMost));
      break;
    }
    texts.push_back(fmt::format("still running: pid {} ({}), {}", stray.key.pid,
                                shorten(escape_text(stray.comm), 30), format_bytes(stray.bytes)));
  }
  const std::size_t named = left.segments.largest.size();
  for (const GrowingSegment& segment : left.segments.largest) {
    texts.push_back(fmt::format("/dev/shm/{}, {}{}", shorten(escape_text(segment.path), 60),
                                format_bytes(segment.grown_bytes),
                                segment.held ? ", held by nobody" : ""));
  }
  if (left.segments.segments > named) {
    texts.push_back(fmt::format("and {} more segments", left.segments.segments - named));
  }
  if (!left.problem.empty()) {
    texts.push_back(fmt::format("what is left may be more: {}", escape_text(left.problem)));
  }
  return texts;
}

std::string history_text(const HistoryChange& change) {
  const bool is_growth = change.what == "growth";
  const auto figure = [&](double value) {
    return is_growth ? format_rate(value, change.by_step ? RateUnit::kStep : RateUnit::kSecond)
                     : format_bytes(value);
  };
  return fmt::format("{} {} from {} to {} with {}", change.what,
                     change.change.after > change.change.before ? "rose" : "fell",
                     figure(change.change.before), figure(change.change.after),
                     commit_text(change));
}

std::string suppression_text(const Suppression& suppression) {
  return fmt::format("{}: {} (until {})", shorten(escape_text(suppression.site), 80),
                     shorten(escape_text(suppression.reason), 200), date_text(suppression.expires));
}

std::vector<std::string> next_texts(const CheckResult& result) {
  std::vector<std::string> texts;
  const auto has = [&](BudgetState state, auto&& fits) {
    return std::any_of(result.rows.begin(), result.rows.end(),
                       [&](const BudgetRow& row) { return row.state == state && fits(row); });
  };
  if (!result.spec.profile && has(BudgetState::kExceeded, is_about_growth)) {
    texts.emplace_back("--profile traces allocations and names the lines that hold the growth");
  }
  if (has(BudgetState::kUndetermined,
          [](const BudgetRow& row) { return row.doubt == BudgetDoubt::kStillGrowing; })) {
    texts.emplace_back(
        "let it run for longer; or, if you know when warm-up is over, say so: --warmup 200steps "
        "or --warmup 10min");
  }
  if (has(BudgetState::kUndetermined,
          [](const BudgetRow& row) { return row.doubt == BudgetDoubt::kStepsUnknown; })) {
    texts.emplace_back(
        "tell it about steps, with --step-regex or markers in the code (docs/markers.md), or give "
        "the budget per minute");
  }
  if (has(BudgetState::kUndetermined,
          [](const BudgetRow& row) { return row.doubt == BudgetDoubt::kTooFew; })) {
    texts.emplace_back("let it run for longer, or sample more often: --interval 50ms");
  }
  return texts;
}

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
  return line.at ? tracker::place_text(*line.frame(), columns) : "an unknown place";
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
