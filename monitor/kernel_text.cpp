// SPDX-License-Identifier: Apache-2.0
#include "monitor/kernel_text.h"

#include <charconv>
#include <limits>

namespace tidemark::monitor {
namespace {

constexpr std::string_view kBlanks = " \t";

bool is_octal(char c) { return c >= '0' && c <= '7'; }

}  // namespace

bool take_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) {
    return false;
  }
  const std::size_t end = rest.find('\n');
  line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return true;
}

std::string_view take_word(std::string_view& rest) {
  const std::size_t first = rest.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    rest = {};
    return {};
  }
  rest.remove_prefix(first);
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlanks));
  rest.remove_prefix(word.size());
  return word;
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> kib_field_bytes(std::string_view text) {
  const auto kib = leading_number(text);
  if (!kib || *kib > std::numeric_limits<std::uint64_t>::max() / 1024) {
    return std::nullopt;
  }
  return *kib * 1024;
}

std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key) {
  std::string_view line;
  while (take_line(text, line)) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return leading_number(line.substr(key.size()));
    }
  }
  return std::nullopt;
}

std::string undo_octal_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] <= '3' && is_octal(text[i + 1]) &&
        is_octal(text[i + 2]) && is_octal(text[i + 3])) {
      const int code = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace tidemark::monitor
