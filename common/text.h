// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

// Names, command lines and log lines are bytes from strangers. Every output goes through one of
// these: nothing that moves a cursor, changes a colour or breaks an encoding gets out.

// For terminals and logs: valid, printable UTF-8 stays; control characters, DEL, C1 controls,
// bidirectional overrides and invalid bytes become "\n", "\t", "\\" or "\xNN".
std::string escape_text(std::string_view bytes);

// For JSON strings (without the quotes): like JSON demands, invalid UTF-8 as U+FFFD.
void append_json_escaped(std::string& out, std::string_view bytes);

// Length of the valid UTF-8 sequence at the start of `bytes`; 0 when there is none.
std::size_t utf8_sequence_length(std::string_view bytes);

// Cuts to `columns` characters (code points), marking the cut with "...". Input is escaped text.
std::string shorten(std::string_view text, std::size_t columns);

// Lines of text for people are no longer than this.
inline constexpr std::size_t kLineColumns = 80;

// Breaks `text` at blanks: "first" stands before its first line, as many blanks before the others.
// Every line ends with '\n'. `text` is escaped already.
std::string wrap_text(std::string_view first, std::string_view text,
                      std::size_t columns = kLineColumns);

std::string_view trim(std::string_view text);
// Of ASCII letters; the rest stays.
std::string to_lower(std::string_view text);
std::string_view basename_of(std::string_view path);
std::vector<std::string_view> split(std::string_view text, char separator);

// The name that `word` is most likely a misspelling of: at most a third of its letters are missing,
// wrong, too many or swapped with a neighbour. "" when there is none. The first of equals.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

// As one would type it into a shell: words that need it are in single quotes. Not escaped.
std::string shell_line(const std::vector<std::string>& argv);

// Takes the text up to the next '\n' off the front of `rest`, without a trailing '\r'.
// nullopt when `rest` is empty.
std::optional<std::string_view> next_line(std::string_view& rest);

// The whole of `text` as a decimal number; nullopt for anything else (sign, blanks, overflow).
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace tidemark
