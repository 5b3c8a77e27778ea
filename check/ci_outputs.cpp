// SPDX-License-Identifier: Apache-2.0
// What CI systems read: JUnit files, and annotations of GitHub Actions.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "check/outputs.h"
#include "check/words.h"
#include "common/text.h"

namespace tidemark::check {
namespace {

std::string xml_text(std::string_view bytes) {
  std::string out;
  for (const char c : escape_text(bytes)) {  // what XML cannot hold is no byte of it any more
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::ptrdiff_t checks_with(std::span<const CheckResult> results, CheckStatus status) {
  return std::count_if(results.begin(), results.end(),
                       [&](const CheckResult& result) { return result.status == status; });
}

double seconds_of(const CheckResult& result) { return result.shown ? result.shown->seconds : 0.0; }

// Line by line: escaping takes line ends for something hostile.
std::string block_text(const std::string& text) {
  std::string out;
  std::string_view rest = text;
  while (const auto line = next_line(rest)) {
    out += xml_text(*line) + '\n';
  }
  return out;
}

std::string case_text(const CheckResult& result) {
  const std::string answer = xml_text(answer_line(result));
  const std::string report = block_text(check_text(result, report::Glyphs::kAscii));
  std::string out =
      fmt::format("    <testcase classname=\"tidemark.check\" name=\"{}\" time=\"{:.3f}\">\n",
                  xml_text(result.spec.name), seconds_of(result));
  switch (result.status) {
    case CheckStatus::kPass:
      break;
    case CheckStatus::kFail:
      out += fmt::format("      <failure type=\"budget\" message=\"{}\">{}</failure>\n", answer,
                         report);
      break;
    case CheckStatus::kUndetermined:
    case CheckStatus::kError:
      out += fmt::format("      <error type=\"{}\" message=\"{}\">{}</error>\n",
                         status_name(result.status), answer, report);
      break;
  }
  if (result.status == CheckStatus::kPass) {
    out += fmt::format("      <system-out>{}</system-out>\n", report);
  }
  return out + "    </testcase>\n";
}

std::string message_text(std::string_view text) {
  std::string out;
  for (const char c : escape_text(text)) {  // without line ends
    out += c == '%' ? "%25" : std::string(1, c);
  }
  return out;
}

std::string property_text(std::string_view text) {
  std::string out;
  for (const char c : message_text(text)) {
    switch (c) {
      case ':':
        out += "%3A";
        break;
      case ',':
        out += "%2C";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Where the line is that grows most: "file=a.cpp,line=3,".
std::string file_text(const CheckResult& result) {
  const std::vector<CheckLine> lines = growing_lines(result);
  const tracker::ShownFrame* const frame = lines.empty() ? nullptr : lines.front().frame();
  if (frame == nullptr || frame->frame->file.empty()) {
    return "";
  }
  return fmt::format("file={},line={},", property_text(frame->frame->file),
                     frame->frame->line.value_or(1));
}

}  // namespace

std::string check_junit(std::span<const CheckResult> results) {
  double seconds = 0.0;
  for (const CheckResult& result : results) {
    seconds += seconds_of(result);
  }
  const std::string counts = fmt::format(
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\"", results.size(),
      checks_with(results, CheckStatus::kFail),
      checks_with(results, CheckStatus::kError) + checks_with(results, CheckStatus::kUndetermined),
      seconds);
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format("<testsuites {}>\n  <testsuite name=\"tidemark check\" {}>\n", counts, counts);
  for (const CheckResult& result : results) {
    out += case_text(result);
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

std::string github_annotations(std::span<const CheckResult> results) {
  std::string out;
  for (const CheckResult& result : results) {
    const std::string title = property_text(fmt::format(
        "tidemark check {}: {}", escape_text(result.spec.name), status_word(result.status)));
    if (result.status != CheckStatus::kPass) {
      const bool is_doubt = result.status == CheckStatus::kUndetermined;
      out += fmt::format("::{} {}title={}::{}\n", is_doubt ? "warning" : "error", file_text(result),
                         title, message_text(answer_line(result)));
    }
    for (const HistoryChange& change : result.changes) {
      if (change.change.after > change.change.before) {
        out += fmt::format("::warning title={}::{}\n", title, message_text(history_text(change)));
      }
    }
  }
  return out;
}

std::string without_workflow_commands(std::string_view text) {
  std::string out;
  std::string_view rest = text;
  while (const auto line = next_line(rest)) {
    const std::size_t first = line->find_first_not_of(" \t");
    const std::string_view shown = first == std::string_view::npos ? "" : line->substr(first);
    const bool is_command = shown.starts_with("::") || shown.starts_with("##[");
    out += line->substr(0, is_command ? first : line->size());
    out += is_command ? "\\" + std::string(shown) : "";
    out += '\n';
  }
  return out;
}

}  // namespace tidemark::check
