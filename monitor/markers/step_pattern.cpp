// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/step_pattern.h"

#include <regex.h>

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace tidemark::monitor {
namespace {

constexpr std::size_t kMaxPatternBytes = 1000;
constexpr std::size_t kMaxGroups = 30;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Rewrites a pattern of our dialect as one of regcomp(3).
class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Status run() {
    if (in_.size() > kMaxPatternBytes) {
      return Error{Errc::kUsage, fmt::format("longer than {} bytes", kMaxPatternBytes)};
    }
    if (in_.substr(0, 4) == "(?i)") {
      ignore_case = true;
      at_ = 4;
    }
    while (at_ < in_.size() && problem_.empty()) {
      step();
    }
    if (!problem_.empty()) {
      return Error{Errc::kUsage, fmt::format("column {}: {}", at_ + 1, problem_)};
    }
    return ok();
  }

  std::string ere;
  bool ignore_case = false;
  std::size_t step_group = 0;  // 0: the whole match

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0';
  }
  void refuse(std::string problem) { problem_ = std::move(problem); }
  void copy(std::size_t count = 1) {
    ere += in_.substr(at_, count);
    at_ += count;
  }

  void step() {
    switch (peek()) {
      case '\\':
        escape();
        break;
      case '[':
        bracket();
        break;
      case '(':
        group();
        break;
      case '*':
      case '+':
      case '?':
      case '}':
        quantifier();
        break;
      default:
        copy();
    }
  }

  // Lazy matching would silently become greedy: "Step.*?(\d+)" would take the last digit.
  void quantifier() {
    if (peek(1) == '?') {
      refuse("lazy quantifiers such as *? are not supported");
    } else if (peek(1) == '+') {
      refuse("possessive quantifiers such as *+ are not supported");
    } else {
      copy();
    }
  }

  void emit_escape(std::string_view text) {
    ere += text;
    at_ += 2;
  }

  void escape() {
    const char c = peek(1);
    switch (c) {
      case 'd':
        return emit_escape("[0-9]");
      case 'D':
        return emit_escape("[^0-9]");
      case 's':
        return emit_escape("[[:space:]]");
      case 'S':
        return emit_escape("[^[:space:]]");
      case 'w':
        return emit_escape("[[:alnum:]_]");
      case 'W':
        return emit_escape("[^[:alnum:]_]");
      case 't':
        return emit_escape("\t");
      case 'b':
      case 'B':
        return copy(2);
      default:
        break;
    }
    if (at_ + 1 == in_.size()) {
      refuse("a backslash at the end");
    } else if (is_digit(c)) {
      refuse("back references are not supported");
    } else if (is_letter(c)) {
      refuse(fmt::format("unknown escape \\{}", c));
    } else {
      copy(2);
    }
  }

  void group() {
    bool captures = true;
    std::size_t opening = 1;
    if (peek(1) == '?') {
      const bool named = (peek(2) == 'P' && peek(3) == '<') ||
                         (peek(2) == '<' && peek(3) != '=' && peek(3) != '!');
      const std::size_t end_of_name = in_.find('>', at_);
      if (peek(2) == ':') {
        captures = false;
        opening = 3;
      } else if (named && end_of_name != std::string_view::npos) {
        opening = end_of_name + 1 - at_;
      } else {
        return refuse("of the (?...) forms only (?:...), (?P<name>...) and a leading (?i) work");
      }
    }
    if (++groups_ > kMaxGroups) {
      return refuse("too many groups");
    }
    if (captures && step_group == 0) {
      step_group = groups_;
    }
    ere += '(';
    at_ += opening;
  }

  void bracket() {
    const std::size_t opened_at = at_;
    copy();
    if (peek() == '^') {
      copy();
    }
    if (peek() == ']') {
      copy();  // in the first place it stands for itself
    }
    while (at_ < in_.size() && peek() != ']' && problem_.empty()) {
      if (peek() == '[' && (peek(1) == ':' || peek(1) == '.' || peek(1) == '=')) {
        const std::size_t end = in_.find(std::string{peek(1), ']'}, at_ + 2);
        copy(end == std::string_view::npos ? 1 : end + 2 - at_);
      } else if (peek() == '\\') {
        escape_in_bracket();
      } else {
        copy();
      }
    }
    if (problem_.empty() && at_ == in_.size()) {
      at_ = opened_at;
      return refuse("[ without ]");
    }
    if (problem_.empty()) {
      copy();
    }
  }

  // A backslash in brackets is an ordinary character for regcomp.
  void escape_in_bracket() {
    const char c = peek(1);
    if (c == 'd') {
      emit_escape("0-9");
    } else if (c == 's') {
      emit_escape("[:space:]");
    } else if (c == 'w') {
      emit_escape("[:alnum:]_");
    } else if (c == 't') {
      emit_escape("\t");
    } else if (is_letter(c) || is_digit(c) || at_ + 1 == in_.size()) {
      refuse("in brackets only \\d \\s \\w \\t and escaped punctuation work");
    } else {
      emit_escape(fmt::format("[.{}.]", c));
    }
  }

  std::string_view in_;
  std::size_t at_ = 0;
  std::size_t groups_ = 0;
  std::string problem_;
};

std::optional<std::int64_t> first_number(std::string_view text) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::size_t at = 0;
  while (at < text.size() && !is_digit(text[at])) {
    ++at;
  }
  if (at == text.size()) {
    return std::nullopt;
  }
  std::int64_t number = 0;
  for (; at < text.size(); ++at) {
    const bool separator =
        (text[at] == ',' || text[at] == '_') && at + 1 < text.size() && is_digit(text[at + 1]);
    if (separator) {
      continue;
    }
    if (!is_digit(text[at])) {
      break;
    }
    const int digit = text[at] - '0';
    if (number > (kMax - digit) / 10) {
      return std::nullopt;
    }
    number = number * 10 + digit;
  }
  return number;
}

}  // namespace

struct StepPattern::Compiled {
  Compiled() = default;
  ~Compiled() {
    if (usable) {
      ::regfree(&regex);
    }
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  regex_t regex{};
  bool usable = false;
  std::size_t step_group = 0;
};

StepPattern::StepPattern(std::shared_ptr<const Compiled> compiled)
    : compiled_(std::move(compiled)) {}

Result<StepPattern> StepPattern::compile(std::string_view pattern) {
  Translator translator(pattern);
  if (const auto status = translator.run(); !status) {
    return status.error();
  }
  auto compiled = std::make_shared<Compiled>();
  const int flags = REG_EXTENDED | (translator.ignore_case ? REG_ICASE : 0);
  const int code = ::regcomp(&compiled->regex, translator.ere.c_str(), flags);
  if (code != 0) {
    std::array<char, 200> message{};
    ::regerror(code, &compiled->regex, message.data(), message.size());
    return Error{Errc::kUsage, message.data()};
  }
  compiled->usable = true;
  compiled->step_group = translator.step_group;
  return StepPattern(std::move(compiled));
}

std::optional<std::int64_t> StepPattern::match(std::string_view line) const {
  std::array<regmatch_t, kMaxGroups + 1> groups{};
  groups[0].rm_so = 0;
  groups[0].rm_eo = static_cast<regoff_t>(line.size());
  // REG_STARTEND: the line needs no terminator and may hold NUL.
  if (::regexec(&compiled_->regex, line.data(), compiled_->step_group + 1, groups.data(),
                REG_STARTEND) != 0) {
    return std::nullopt;
  }
  const regmatch_t& found = groups[compiled_->step_group];
  if (found.rm_so < 0) {
    return std::nullopt;  // an alternative without the group
  }
  return first_number(line.substr(static_cast<std::size_t>(found.rm_so),
                                  static_cast<std::size_t>(found.rm_eo - found.rm_so)));
}

}  // namespace tidemark::monitor
