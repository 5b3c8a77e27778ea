// SPDX-License-Identifier: Apache-2.0
#include "check/text.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "check/lines.h"
#include "check/words.h"
#include "common/text.h"
#include "common/units.h"
#include "common/wrap_text.h"
#include "report/track_text.h"
#include "report/track_words.h"

namespace tidemark::check {
namespace {

constexpr std::size_t kTextColumns = 100;

void add_block(std::string& out, std::string_view title, const std::vector<std::string>& lines) {
  std::string_view first = title;
  for (const std::string& line : lines) {
    out += wrap_text(fmt::format("{:<10}", first), line, kTextColumns);
    first = "";
  }
}

}  // namespace

std::string check_table(const tracker::BudgetRows& rows) {
  std::vector<std::array<std::string, 4>> lines{{"budget", "measured", "limit", ""}};
  for (const tracker::BudgetRow& row : rows) {
    lines.push_back({std::string(budget_name(row.kind)), measured_text(row), limit_text(row),
                     std::string(state_word(row.state))});
  }
  std::array<std::size_t, 3> widths{};
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text = fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}", line[0], widths[0], line[1],
                                   widths[1], line[2], widths[2], line[3]);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

std::string check_text(const CheckResult& result, report::Glyphs glyphs) {
  std::string out = fmt::format("{} {}: {}\n", status_word(result.status),
                                escape_text(result.spec.name), answer_line(result));
  if (!result.rows.empty()) {
    out += check_table(result.rows);
  }
  if (result.shown && result.shown->track.verdict) {
    out += '\n' + wrap_text("verdict   ", report::answer_text(result.shown->track), kTextColumns);
    const tracker::SeriesVerdict& reading = result.shown->track.verdict->answer().series;
    if (const std::string chart = report::chart_text(reading, glyphs); !chart.empty()) {
      out += '\n' + chart;
    }
  }
  std::string rest;
  if (result.status == CheckStatus::kUndetermined && result.shown && result.shown->track.verdict) {
    add_block(rest, "because",
              report::evidence_texts(result.shown->track.verdict->answer().series));
  }
  if (result.shown) {
    add_block(rest, "left", left_texts(result.shown->left));
  }
  std::vector<std::string> lines;
  for (const HistoryChange& change : result.changes) {
    lines.push_back(history_text(change));
  }
  add_block(rest, "history", lines);
  lines.clear();
  for (const Suppression& suppression : result.suppressed) {
    lines.push_back(suppression_text(suppression));
  }
  add_block(rest, "suppressed", lines);
  add_block(rest, "note", result.notes);
  if (result.status == CheckStatus::kFail) {
    if (const std::string lines_that_grow = check_lines(result); !lines_that_grow.empty()) {
      rest += "grows\n" + lines_that_grow;
    }
  }
  add_block(rest, "next", next_texts(result));
  return rest.empty() ? out : out + '\n' + rest;
}

std::string check_summary(std::span<const CheckResult> results) {
  std::vector<std::string> parts;
  constexpr std::array<std::pair<CheckStatus, std::string_view>, 4> kWords{
      {{CheckStatus::kPass, "passed"},
       {CheckStatus::kFail, "failed"},
       {CheckStatus::kUndetermined, "undetermined"},
       {CheckStatus::kError, "error"}}};
  for (const auto& [status, word] : kWords) {
    std::vector<std::string> names;
    for (const CheckResult& result : results) {
      if (result.status == status) {
        names.push_back(escape_text(result.spec.name));
      }
    }
    if (!names.empty()) {
      const bool is_good = status == CheckStatus::kPass;
      const std::string_view plural = status == CheckStatus::kError && names.size() > 1 ? "s" : "";
      parts.push_back(is_good ? fmt::format("{} {}", names.size(), word)
                              : fmt::format("{} {}{} ({})", names.size(), word, plural,
                                            fmt::join(names, ", ")));
    }
  }
  return fmt::format("checks: {}\n", fmt::join(parts, ", "));
}

}  // namespace tidemark::check
