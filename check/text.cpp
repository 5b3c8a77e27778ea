// SPDX-License-Identifier: Apache-2.0
#include "check/outputs.h"

#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "check/words.h"
#include "common/text.h"
#include "report/document.h"
#include "report/track_text.h"
#include "report/track_words.h"

namespace tidemark::check {
namespace {

using report::Document;

constexpr report::TextLayout kLayout{.columns = 100, .label_columns = 10};

const tracker::SeriesVerdict* shown_reading(const CheckResult& result) {
  return result.shown && result.shown->track.verdict ? &result.shown->track.verdict->answer().series
                                                     : nullptr;
}

report::Table budget_table(const tracker::BudgetRows& rows) {
  report::Table table{{{"budget", false, true}, {"measured"}, {"limit"}, {""}}, {}};
  for (const tracker::BudgetRow& row : rows) {
    table.rows.push_back(
        {{std::string(budget_name(row.kind))},
         {measured_text(row)},
         {limit_text(row)},
         {std::string(state_word(row.state)), row.state == tracker::BudgetState::kExceeded}});
  }
  return table;
}

void add_left(Document& document, std::string_view label, const CheckResult& result) {
  if (result.shown) {
    document.rows(label, left_texts(result.shown->left));
  }
}

void add_notes(Document& document, const CheckResult& result) {
  std::vector<std::string> changes;
  for (const HistoryChange& change : result.changes) {
    changes.push_back(history_text(change));
  }
  std::vector<std::string> suppressed;
  for (const Suppression& suppression : result.suppressed) {
    suppressed.push_back(suppression_text(suppression));
  }
  document.rows("history", std::move(changes));
  document.rows("suppressed", std::move(suppressed)).rows("note", result.notes);
}

// "collate(Batch&) collate.cpp:42: 206 KiB/step, 89 % of the growth", the fastest first.
std::vector<std::string> line_texts(const CheckResult& result) {
  constexpr std::size_t kMostLines = 3;
  constexpr std::size_t kColumns = 120;
  std::vector<std::string> texts;
  for (const CheckLine& line : growing_lines(result)) {
    if (texts.size() < kMostLines) {
      texts.push_back(fmt::format("{}: {}", place_text(line, kColumns), figures_text(line)));
    }
  }
  return texts;
}

// The curve and the call stacks: what a reader may want to open.
std::string markdown_details(const CheckResult& result) {
  Document inside;
  if (const tracker::SeriesVerdict* const reading = shown_reading(result)) {
    inside.paragraph(report::answer_text(result.shown->track));
    inside.block(report::chart_text(*reading, report::Glyphs::kAscii));
  }
  if (result.status == CheckStatus::kFail) {
    if (const std::string lines = check_lines(result); !lines.empty()) {
      inside.paragraph("What grows:").block(lines);
    }
  }
  return inside.is_empty()
             ? ""
             : fmt::format(
                   "<details{}><summary>Memory over the run</summary>\n\n{}\n"
                   "</details>\n\n",
                   result.status == CheckStatus::kPass ? "" : " open", to_markdown(inside));
}

}  // namespace

std::string check_text(const CheckResult& result, report::Glyphs glyphs) {
  Document document;
  document.heading(fmt::format("{} {}: {}", status_word(result.status),
                               escape_text(result.spec.name), answer_line(result)));
  document.table(budget_table(result.rows));
  const tracker::SeriesVerdict* const reading = shown_reading(result);
  if (reading != nullptr) {
    document.empty_line().row("verdict", report::answer_text(result.shown->track));
    if (const std::string chart = report::chart_text(*reading, glyphs); !chart.empty()) {
      document.empty_line().block(chart);
    }
  }
  Document rest;
  if (result.status == CheckStatus::kUndetermined && reading != nullptr) {
    rest.rows("because", report::evidence_texts(*reading));
  }
  add_left(rest, "left", result);
  add_notes(rest, result);
  if (result.status == CheckStatus::kFail) {
    if (const std::string lines = check_lines(result); !lines.empty()) {
      rest.block("grows\n" + lines);
    }
  }
  rest.rows("next", next_texts(result));
  const std::string out = to_text(document, kLayout);
  return rest.is_empty() ? out : out + '\n' + to_text(rest, kLayout);
}

std::string check_markdown(std::span<const CheckResult> results) {
  std::string out = "## Memory checks\n\n";
  if (results.size() > 1) {
    out += report::markdown_text(trim(check_summary(results))) + "\n\n";
  }
  for (const CheckResult& result : results) {
    Document document;
    document.heading(
        fmt::format("{}: {}", status_word(result.status), escape_text(result.spec.name)));
    document.paragraph(answer_line(result)).table(budget_table(result.rows));
    add_left(document, "left behind", result);
    if (result.status == CheckStatus::kFail) {
      document.rows("grows", line_texts(result));
    }
    add_notes(document, result);
    document.rows("next", next_texts(result));
    out += to_markdown(document) + markdown_details(result);
  }
  return out;
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
