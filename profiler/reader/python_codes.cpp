// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/python_codes.h"

#include <string>
#include <utility>

#include "profiler/reader/python_lines.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

constexpr std::uint64_t kMostCodes = std::uint64_t{1} << 22U;
constexpr std::size_t kMostKept = 4096;
constexpr std::uint32_t kMostTextBytes = 64U << 10U;  // a line table is the longest

}  // namespace

void PythonCodes::extend(const TraceHeader& header) {
  table_ = header.table(wire::Table::kCodes);
  strings_ = header.table(wire::Table::kStrings);
  size_ = bounded(header.used(wire::Table::kCodes), readable_end(table_), kMostCodes).end;
}

bool PythonCodes::read_text(int fd, std::uint32_t offset, std::uint32_t bytes,
                            std::string& text) const {
  if (bytes > kMostTextBytes || std::uint64_t{offset} + bytes > strings_.capacity()) {
    return false;
  }
  text.resize(bytes);
  return read_items(fd, strings_, offset, bytes, text.data()) == 0;
}

const PythonCodes::Code* PythonCodes::read(int fd, std::uint32_t number) {
  if (const auto known = codes_.find(number); known != codes_.end()) {
    return &known->second;
  }
  wire::PythonCode raw{};
  Code code;
  if (number >= size_ || read_items(fd, table_, number, 1, &raw) != 0 || raw.ready != 1 ||
      !read_text(fd, raw.name_offset, raw.name_bytes, code.function) ||
      !read_text(fd, raw.file_offset, raw.file_bytes, code.file) ||
      !read_text(fd, raw.lines_offset, raw.lines_bytes, code.lines)) {
    return nullptr;
  }
  code.first_line = raw.first_line;
  code.minor = raw.minor;
  if (codes_.size() >= kMostKept) {
    codes_.clear();
  }
  return &codes_.emplace(number, std::move(code)).first->second;
}

void PythonCodes::name(int fd, StackFrame& frame) {
  const auto number = static_cast<std::uint32_t>(frame.value >> 32U);
  const auto unit = static_cast<std::uint32_t>(frame.value);
  const Code* const code = read(fd, number);
  if (code == nullptr) {
    return;
  }
  frame.function = code->function;
  frame.file = code->file;
  if (unit != wire::kNoUnit && !code->lines.empty()) {
    frame.line = python_line(code->minor, code->first_line, code->lines, unit);
  }
  if (!frame.line && code->first_line > 0) {  // of the function at least
    frame.line = code->first_line;
  }
}

}  // namespace tidemark::reader
