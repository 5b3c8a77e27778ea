// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/python_lines.h"

#include <cstddef>
#include <limits>

namespace tidemark::reader {
namespace {

std::optional<std::uint32_t> as_line(std::int64_t line) {
  if (line < 1 || line > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(line);
}

std::uint8_t byte_at(std::string_view table, std::size_t at) {
  return static_cast<std::uint8_t>(table[at]);
}
std::int8_t signed_at(std::string_view table, std::size_t at) {
  return static_cast<std::int8_t>(table[at]);
}

// Pairs: bytes from the last instruction with a line of its own, and lines from there.
std::optional<std::uint32_t> line_of_pairs(std::int64_t line, std::string_view table,
                                           std::uint64_t offset) {
  std::uint64_t at = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    at += byte_at(table, i);
    if (at > offset) {
      break;
    }
    line += signed_at(table, i + 1);
  }
  return as_line(line);
}

// Pairs: bytes that the stretch has, and its lines from the last one with a line.
std::optional<std::uint32_t> line_of_stretches(std::int64_t line, std::string_view table,
                                               std::uint64_t offset) {
  constexpr std::int8_t kNoLine = -128;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    end += byte_at(table, i);
    const std::int8_t lines = signed_at(table, i + 1);
    line += lines == kNoLine ? 0 : lines;
    if (offset < end) {
      return lines == kNoLine ? std::nullopt : as_line(line);
    }
  }
  return std::nullopt;
}

// Reads the numbers of a location table: six bits in each byte, the lowest first.
class LocationReader {
 public:
  explicit LocationReader(std::string_view table) : table_(table) {}
  bool at_end() const { return at_ >= table_.size(); }
  std::uint8_t byte() { return at_end() ? 0 : byte_at(table_, at_++); }
  void skip(std::size_t bytes) { at_ += bytes; }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !at_end() && shift < 60; shift += 6) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x3fU} << shift;
      if ((next & 0x40U) == 0) {
        break;
      }
    }
    return value;
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    const auto size = static_cast<std::int64_t>(value >> 1U);
    return (value & 1U) != 0 ? -size : size;
  }

 private:
  std::string_view table_;
  std::size_t at_ = 0;
};

// Each entry: how many units it covers, its kind, and what that kind says of lines and columns.
std::optional<std::uint32_t> line_of_locations(std::int64_t line, std::string_view table,
                                               std::uint64_t unit) {
  constexpr unsigned kFirstOneLine = 10;
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kLong = 14;
  constexpr unsigned kNoLocation = 15;
  constexpr std::int64_t kMostLines = std::numeric_limits<std::int32_t>::max();
  LocationReader reader(table);
  std::uint64_t end = 0;
  while (!reader.at_end()) {
    const std::uint8_t head = reader.byte();
    const unsigned kind = head >> 3U & 15U;
    end += (head & 7U) + 1U;
    if (kind < kFirstOneLine) {
      reader.skip(1);
    } else if (kind < kNoColumns) {
      line += kind - kFirstOneLine;
      reader.skip(2);
    } else if (kind <= kLong) {
      line += reader.signed_number();
      for (int i = 0; i < 3 && kind == kLong; ++i) {
        reader.number();
      }
    }
    if (line < -kMostLines || line > kMostLines) {
      return std::nullopt;
    }
    if (unit < end) {
      return kind == kNoLocation ? std::nullopt : as_line(line);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> python_line(std::uint16_t minor, std::uint32_t first_line,
                                         std::string_view table, std::uint32_t unit) {
  const std::int64_t line = first_line;
  if (minor >= 11) {
    return line_of_locations(line, table, unit);
  }
  const std::uint64_t offset = std::uint64_t{unit} * 2;
  return minor == 10 ? line_of_stretches(line, table, offset) : line_of_pairs(line, table, offset);
}

}  // namespace tidemark::reader
