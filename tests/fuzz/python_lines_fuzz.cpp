// SPDX-License-Identifier: Apache-2.0
// A line table of Python, of any bytes and for each version: nothing outside of it is read, and
// what comes out is a line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include "common/check.h"
#include "profiler/reader/python_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t head[2] = {};  // the first line, and an instruction
  const std::size_t head_bytes = std::min(size, sizeof(head));
  std::memcpy(head, data, head_bytes);
  const std::size_t bytes = size - head_bytes;
  // In a block of its own, so that the sanitizer sees the first byte behind it.
  const auto table = std::make_unique<char[]>(bytes);
  std::copy_n(data + head_bytes, bytes, table.get());
  constexpr std::uint32_t kUnits = 32;
  for (std::uint16_t minor = 9; minor <= 15; ++minor) {
    for (std::uint32_t i = 0; i < kUnits; ++i) {
      const auto line = tidemark::reader::python_line(
          minor, head[0], std::string_view(table.get(), bytes), i == 0 ? head[1] : i - 1);
      TIDEMARK_CHECK(!line || (*line >= 1 && *line <= std::numeric_limits<std::int32_t>::max()),
                     "no such line");
    }
  }
  return 0;
}
