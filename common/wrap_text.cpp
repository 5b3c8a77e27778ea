// SPDX-License-Identifier: Apache-2.0
#include "common/wrap_text.h"

#include <vector>

#include "common/text.h"

namespace tidemark {
namespace {

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) {
    columns += (static_cast<unsigned char>(c) & 0xC0U) == 0x80U ? 0U : 1U;  // not a continuation
  }
  return columns;
}

// A number and its unit stay together.
bool are_glued(std::string_view before, std::string_view after) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !before.empty() && !after.empty() && is_digit(before.back()) && !is_digit(after.front());
}

// The words of `text`, those that are glued together as one.
std::vector<std::string_view> unbreakable_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(text, ' ')) {
    if (!words.empty() && are_glued(words.back(), word)) {
      words.back() = std::string_view(
          words.back().data(),
          static_cast<std::size_t>(word.data() + word.size() - words.back().data()));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

}  // namespace

std::string wrap_text(std::string_view first, std::string_view text, std::size_t columns) {
  const std::size_t indent = columns_of(first);
  std::string out(first);
  std::size_t used = indent;
  bool at_start = true;
  for (const std::string_view word : unbreakable_words(text)) {
    const std::size_t width = columns_of(word);
    if (!at_start && used + 1 + width > columns) {
      out += '\n' + std::string(indent, ' ');
      used = indent;
      at_start = true;
    }
    out += at_start ? "" : " ";
    out += word;
    used += width + (at_start ? 0 : 1);
    at_start = false;
  }
  return out + '\n';
}

}  // namespace tidemark
