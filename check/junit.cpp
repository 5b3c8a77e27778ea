// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "check/outputs.h"
#include "check/text.h"
#include "check/words.h"
#include "common/text.h"

namespace tidemark::check {
namespace {

std::ptrdiff_t count_of(std::span<const CheckResult> results, CheckStatus status) {
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

}  // namespace

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

std::string check_junit(std::span<const CheckResult> results) {
  double seconds = 0.0;
  for (const CheckResult& result : results) {
    seconds += seconds_of(result);
  }
  const std::string counts = fmt::format(
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\"", results.size(),
      count_of(results, CheckStatus::kFail),
      count_of(results, CheckStatus::kError) + count_of(results, CheckStatus::kUndetermined),
      seconds);
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format("<testsuites {}>\n  <testsuite name=\"tidemark check\" {}>\n", counts, counts);
  for (const CheckResult& result : results) {
    out += case_text(result);
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace tidemark::check
