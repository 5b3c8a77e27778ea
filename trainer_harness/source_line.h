// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark::harness {

// "trainer_harness/collator.cpp:42"
inline std::string source_line(std::string_view file, unsigned line) {
  const std::size_t at = file.rfind("trainer_harness/");
  return std::string(at == std::string_view::npos ? file : file.substr(at)) + ":" +
         std::to_string(line);
}

// Passes a value on and notes the line of the call, for the truth about a leak: the expression
// that makes the value stands on that line.
template <typename Value>
Value noted(std::optional<std::string>& line, Value value,
            std::source_location where = std::source_location::current()) {
  if (!line) {
    line = source_line(where.file_name(), where.line());
  }
  return value;
}

}  // namespace tidemark::harness
