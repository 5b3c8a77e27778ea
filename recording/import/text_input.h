// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::recording {

// Of UTF-8, at the beginning of files from other systems.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// A text file or pipe, line by line, in memory that does not depend on its length. The first
// failed read ends the input; see error().
class TextInput {
 public:
  static constexpr std::size_t kMaxLineBytes = 64U << 10U;

  struct Line {
    std::string_view text;     // without its end ("\n" or "\r\n"); valid until the next call
    bool is_too_long = false;  // beyond kMaxLineBytes: `text` is empty
  };

  // `name` is what errors call it.
  TextInput(Fd fd, std::string name);

  const std::string& name() const { return name_; }
  // The start of the input (as far as one buffer reaches), without taking it. Before the first line
  // only.
  std::string_view peek();
  // False at the end, and after an error. A UTF-8 byte order mark is not part of the first line.
  bool next_line(Line& line);
  std::uint64_t line_number() const { return line_number_; }  // of the last line, from 1
  // Everything that is left. More than `limit_bytes` is an error.
  Result<std::string> read_rest(std::size_t limit_bytes);
  // The same into a new file.
  Status spool_to(const std::string& path, std::uint64_t limit_bytes);
  const std::optional<Error>& error() const { return error_; }

 private:
  bool fill();
  template <typename Take>
  Status drain(std::uint64_t limit_bytes, Take take);
  void skip_byte_order_mark();
  void skip_rest_of_line();

  Fd fd_;
  std::string name_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what was not taken yet
  std::size_t end_ = 0;
  std::uint64_t line_number_ = 0;
  bool at_end_ = false;
  std::optional<Error> error_;
};

// The first N fields of a line that blanks separate; missing ones are empty.
template <std::size_t N>
std::array<std::string_view, N> split_blanks(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::array<std::string_view, N> fields;
  for (std::string_view& field : fields) {
    const std::size_t start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) {
      break;
    }
    line.remove_prefix(start);
    field = line.substr(0, line.find_first_of(kBlanks));
    line.remove_prefix(field.size());
  }
  return fields;
}

// "512.25" -> bytes; nullopt for anything that is no size: negative, not finite, beyond 8 PiB.
std::optional<std::uint64_t> bytes_of_mib(std::string_view text);

}  // namespace tidemark::recording
