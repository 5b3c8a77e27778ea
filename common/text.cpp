// SPDX-License-Identifier: Apache-2.0
#include "common/text.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace tidemark {
namespace {

unsigned byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

// Decodes a sequence that utf8_sequence_length() accepted.
std::uint32_t decode(std::string_view sequence) {
  const unsigned first = byte_at(sequence, 0);
  if (sequence.size() == 1) {
    return first;
  }
  std::uint32_t code = first & (0x7FU >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) {
    code = code << 6U | (byte_at(sequence, i) & 0x3FU);
  }
  return code;
}

// Characters that a terminal acts upon, that reorder what a reader sees, or that nobody sees: two
// names would look alike. All have four hex digits at most.
bool is_dangerous(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
         (code >= 0x200B && code <= 0x200D) || code == 0x061C || code == 0x00AD || code == 0xFEFF;
}

void append_hex(std::string& out, std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    out += fmt::format("\\x{:02x}", byte_at(bytes, i));
  }
}

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

// Letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> least(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1,
                              least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
      }
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::size_t utf8_sequence_length(std::string_view bytes) {
  if (bytes.empty()) {
    return 0;
  }
  const unsigned first = byte_at(bytes, 0);
  if (first < 0x80) {
    return 1;
  }
  std::size_t length = 0;
  unsigned low = 0x80;  // allowed range of the second byte: no overlong forms, no surrogates
  unsigned high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    low = first == 0xE0 ? 0xA0 : low;
    high = first == 0xED ? 0x9F : high;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    low = first == 0xF0 ? 0x90 : low;
    high = first == 0xF4 ? 0x8F : high;
  } else {
    return 0;
  }
  if (bytes.size() < length || byte_at(bytes, 1) < low || byte_at(bytes, 1) > high) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(bytes, i) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  return length;
}

std::string escape_text(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = utf8_sequence_length(bytes);
    const std::string_view sequence = bytes.substr(0, length == 0 ? 1 : length);
    bytes.remove_prefix(sequence.size());
    if (sequence == "\\") {
      out += "\\\\";
    } else if (sequence == "\n") {
      out += "\\n";
    } else if (sequence == "\t") {
      out += "\\t";
    } else if (length == 0 || is_dangerous(decode(sequence))) {
      append_hex(out, sequence);
    } else {
      out += sequence;
    }
  }
  return out;
}

void append_json_escaped(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = utf8_sequence_length(bytes);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      bytes.remove_prefix(1);
      continue;
    }
    const std::string_view sequence = bytes.substr(0, length);
    bytes.remove_prefix(length);
    const std::uint32_t code = decode(sequence);
    if (sequence == "\"" || sequence == "\\") {
      out += '\\';
      out += sequence;
    } else if (sequence == "\n") {
      out += "\\n";
    } else if (sequence == "\t") {
      out += "\\t";
    } else if (sequence == "\r") {
      out += "\\r";
    } else if (is_dangerous(code)) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += sequence;
    }
  }
}

std::string shorten(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  std::size_t cut = 0;  // where the text must end if "..." has to follow
  std::size_t i = 0;
  while (i < text.size()) {
    if (used + 3 <= columns) {
      cut = i;
    }
    const std::size_t length = utf8_sequence_length(text.substr(i));
    i += length == 0 ? 1 : length;
    if (++used > columns) {
      return std::string(text.substr(0, cut)) + std::string(std::min<std::size_t>(3, columns), '.');
    }
  }
  return std::string(text);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kWhiteSpace = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return lower;
}

std::string_view basename_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 64;  // nobody misspells more, and the table is square
  std::string nearest;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names) {
    if (word.empty() || word.size() > kLongest || name.size() > kLongest) {
      continue;
    }
    const std::size_t distance = edit_distance(word, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string shell_line(const std::vector<std::string>& argv) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^";
  std::string line;
  for (const std::string& word : argv) {
    line += line.empty() ? "" : " ";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    line += '\'';
  }
  return line;
}

std::optional<std::string_view> next_line(std::string_view& rest) {
  if (rest.empty()) {
    return std::nullopt;
  }
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  return line;
}

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
