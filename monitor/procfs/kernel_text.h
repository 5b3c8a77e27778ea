// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

// The forms in which the kernel writes numbers and names into its text files.
namespace tidemark::monitor {

// Takes the line up to the next '\n' off the front of `rest`; false when nothing is left. Unlike
// next_line() it keeps a '\r': a process may have one in its name.
bool take_line(std::string_view& rest, std::string_view& line);

// Takes the next word (no blanks or tabs) off the front; empty when there is none.
std::string_view take_word(std::string_view& rest);

// The decimal number after leading blanks; what follows it is ignored.
std::optional<std::uint64_t> leading_number(std::string_view text);

// The value of a "  1234 kB" field in bytes; nullopt when it is no number or overflows.
std::optional<std::uint64_t> kib_field_bytes(std::string_view text);

// The number in the line "<key> 1234" of memory.stat, memory.events, vmstat, ...
std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key);

// Undoes the octal escapes ("\040" for a blank) of mountinfo and maps.
std::string undo_octal_escapes(std::string_view text);

// Reads a text file piece by piece, in constant memory, and hands out pieces that consist of whole
// lines (the last may lack its '\n'). Stops early when `take` returns false, and at `limit_bytes`.
Status read_whole_lines(int fd, const std::function<bool(std::string_view)>& take,
                        std::size_t limit_bytes = static_cast<std::size_t>(-1));

}  // namespace tidemark::monitor
