// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark::reader {

// The line of an instruction by the line table of its code object, in any of CPython's three
// formats: pairs of distances and lines (3.9), the same with the end of each stretch (3.10, PEP
// 626), or entries of variable length (from 3.11 on, PEP 657). `minor` is that of Python 3, `unit`
// the instruction, in units of two bytes. nullopt: it has no line, or the table makes no sense. The
// table is untrusted.
std::optional<std::uint32_t> python_line(std::uint16_t minor, std::uint32_t first_line,
                                         std::string_view table, std::uint32_t unit);

}  // namespace tidemark::reader
