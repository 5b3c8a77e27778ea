// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "check/lines.h"
#include "check/outputs.h"
#include "check/text.h"
#include "check/words.h"
#include "common/text.h"
#include "report/chart_text.h"
#include "report/track_words.h"

namespace tidemark::check {
namespace {

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

// A block that nothing in it can end.
std::string fenced(const std::string& text) {
  std::size_t longest = 2;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fmt::format("{0}text\n{1}{2}{0}\n", fence, text, text.ends_with('\n') ? "" : "\n");
}

std::string table_text(const tracker::BudgetRows& rows) {
  if (rows.empty()) {
    return "";
  }
  std::string out = "| budget | measured | limit | |\n| --- | --- | --- | --- |\n";
  for (const tracker::BudgetRow& row : rows) {
    out += fmt::format("| `{}` | {} | {} | {} |\n", budget_name(row.kind),
                       markdown_text(measured_text(row)), markdown_text(limit_text(row)),
                       row.state == tracker::BudgetState::kExceeded
                           ? fmt::format("**{}**", state_word(row.state))
                           : std::string(state_word(row.state)));
  }
  return out + '\n';
}

void add_list(std::string& out, std::string_view title, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    out += fmt::format("- {}: {}\n", title, markdown_text(line));
  }
}

std::string details_text(const CheckResult& result) {
  std::string inside;
  if (result.shown && result.shown->track.verdict) {
    inside += markdown_text(report::answer_text(result.shown->track)) + "\n\n";
    const tracker::SeriesVerdict& reading = result.shown->track.verdict->answer().series;
    if (const std::string chart = report::chart_text(reading, report::Glyphs::kAscii);
        !chart.empty()) {
      inside += fenced(chart);
    }
  }
  if (result.status == CheckStatus::kFail) {
    if (const std::string lines = check_lines(result); !lines.empty()) {
      inside += "\nWhat grows:\n\n" + fenced(lines);
    }
  }
  const std::string_view open = result.status == CheckStatus::kPass ? "" : " open";
  return inside.empty() ? ""
                        : fmt::format(
                              "<details{}><summary>Memory over the run</summary>\n\n{}\n"
                              "</details>\n\n",
                              open, inside);
}

std::string check_section(const CheckResult& result) {
  std::string out =
      fmt::format("### {}: {}\n\n{}\n\n", status_word(result.status),
                  markdown_text(result.spec.name), markdown_text(answer_line(result)));
  out += table_text(result.rows);
  std::string list;
  if (result.shown) {
    add_list(list, "left behind", left_texts(result.shown->left));
  }
  std::vector<std::string> lines;
  if (result.status == CheckStatus::kFail) {
    lines = line_texts(result);
  }
  add_list(list, "grows", lines);
  lines.clear();
  for (const HistoryChange& change : result.changes) {
    lines.push_back(history_text(change));
  }
  add_list(list, "history", lines);
  lines.clear();
  for (const Suppression& suppression : result.suppressed) {
    lines.push_back(suppression_text(suppression));
  }
  add_list(list, "suppressed", lines);
  add_list(list, "note", result.notes);
  add_list(list, "next", next_texts(result));
  if (!list.empty()) {
    out += list + '\n';
  }
  return out + details_text(result);
}

}  // namespace

std::string markdown_text(std::string_view bytes) {
  // Letters, digits, blanks and what no reader of Markdown takes for a sign stay.
  constexpr std::string_view kPlain = " .,:;/+-()%'\"=?";
  std::string out;
  for (const char c : escape_text(bytes)) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || (static_cast<unsigned char>(c) & 0x80U) != 0;
    if (is_letter || kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("&#{};", static_cast<int>(c));
    }
  }
  return out;
}

std::string check_markdown(std::span<const CheckResult> results) {
  std::string out = "## Memory checks\n\n";
  if (results.size() > 1) {
    std::string summary = check_summary(results);
    summary.pop_back();
    out += markdown_text(summary) + "\n\n";
  }
  for (const CheckResult& result : results) {
    out += check_section(result);
  }
  return out;
}

}  // namespace tidemark::check
