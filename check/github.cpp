// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <fmt/format.h>

#include "check/lines.h"
#include "check/outputs.h"
#include "check/words.h"
#include "common/text.h"

namespace tidemark::check {
namespace {

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
