// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark::recording {

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
