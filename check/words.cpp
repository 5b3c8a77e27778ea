// SPDX-License-Identifier: Apache-2.0
#include "check/words.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "check/lines.h"
#include "common/text.h"
#include "common/units.h"
#include "report/track_words.h"

namespace tidemark::check {
namespace {

using tracker::Axis;
using tracker::BudgetDoubt;
using tracker::BudgetKind;
using tracker::BudgetRow;
using tracker::BudgetState;
using tracker::BudgetUnit;

bool is_rate(const BudgetRow& row) {
  return row.unit == BudgetUnit::kBytesPerSecond || row.unit == BudgetUnit::kBytesPerStep;
}

std::string figure_text(const BudgetRow& row, double value) {
  switch (row.unit) {
    case BudgetUnit::kBytes:
      return report::size_text(value);
    case BudgetUnit::kBytesPerSecond:
      return report::per_axis_text(value, Axis::kTime);
    case BudgetUnit::kBytesPerStep:
      return report::per_axis_text(value, Axis::kSteps);
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

std::string budgets_text(std::ptrdiff_t count) {
  return count == 1 ? "1 budget" : fmt::format("{} budgets", count);
}

bool is_about_growth(const BudgetRow& row) {
  return row.kind == BudgetKind::kGrowth || row.kind == BudgetKind::kBaselineGrowth;
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
    text += fmt::format("; and {} more {}", more, more == 1 ? "budget" : "budgets");
  }
  if (const std::string line = line_that_grows(result); !line.empty()) {
    text += "; grows most: " + line;
  }
  if (result.spec.repeat > 1 && result.runs > 1) {
    text += fmt::format("; in each of {} runs", result.runs);
  }
  return text;
}

std::string pass_text(const CheckResult& result) {
  std::string text =
      fmt::format("within {}", budgets_text(static_cast<std::ptrdiff_t>(result.rows.size())));
  if (const std::ptrdiff_t suppressed = count_of(result, BudgetState::kSuppressed);
      suppressed > 0) {
    text += fmt::format(", {} only because of a suppression", suppressed);
  }
  if (const std::string detectable = detectable_text(result); !detectable.empty()) {
    text += "; " + detectable;
  }
  return text;
}

std::string commit_text(const HistoryChange& change) {
  constexpr std::size_t kShort = 12;
  const std::string commit = escape_text(change.commit).substr(0, kShort);
  return commit.empty() ? escape_text(change.time)
                        : fmt::format("{} ({})", commit, escape_text(change.time));
}

}  // namespace

std::string_view status_word(CheckStatus status) {
  switch (status) {
    case CheckStatus::kPass:
      return "PASS";
    case CheckStatus::kUndetermined:
      return "CANNOT TELL";
    case CheckStatus::kFail:
      return "FAIL";
    case CheckStatus::kError:
      return "ERROR";
  }
  return "";
}

std::string_view state_word(BudgetState state) {
  switch (state) {
    case BudgetState::kWithin:
      return "ok";
    case BudgetState::kSuppressed:
      return "suppressed";
    case BudgetState::kUndetermined:
      return "cannot tell";
    case BudgetState::kExceeded:
      return "EXCEEDED";
  }
  return "";
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
  const std::string_view relation = row.state == BudgetState::kExceeded ? "more than" : "limit";
  return fmt::format("{}: {}, {} {}", name, measured_text(row), relation, limit_text(row));
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

std::string detectable_text(const CheckResult& result) {
  if (!result.shown || !result.shown->track.verdict) {
    return "";
  }
  const tracker::SeriesVerdict& reading = result.shown->track.verdict->answer().series;
  const auto& per_step = reading.smallest_detectable_per_step;
  const auto& per_s = reading.smallest_detectable_per_s;
  if (!per_step && !per_s) {
    return "";
  }
  const bool by_step = per_step && (reading.axis == Axis::kSteps || !per_s);
  return fmt::format("a leak above {} would have been seen",
                     by_step ? report::per_axis_text(*per_step, Axis::kSteps)
                             : report::per_axis_text(*per_s, Axis::kTime));
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
    return is_growth ? report::per_axis_text(value, change.by_step ? Axis::kSteps : Axis::kTime)
                     : report::size_text(value);
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

}  // namespace tidemark::check
