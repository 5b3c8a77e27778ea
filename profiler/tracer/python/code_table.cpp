// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/python/code_table.h"

#include "profiler/tracer/python/frame_reader.h"
#include "profiler/wire/trace_layout.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Table;

constexpr std::uint64_t kMostNameBytes = 512;
constexpr std::uint64_t kMostFileBytes = 4096;
constexpr std::uint64_t kMostLineBytes = 64 << 10U;

std::uint32_t character_of(const Text& text, std::uint64_t index) noexcept {
  const std::uint64_t at = text.characters + index * text.width;
  const std::uint64_t word = load_word(at & ~std::uint64_t{7}) >> (at % 8 * 8);
  return static_cast<std::uint32_t>(text.width == 1   ? word & 0xff
                                    : text.width == 2 ? word & 0xffff
                                                      : word);
}

// Calls visit(byte) for each byte of a text in UTF-8, as long as whole characters fit.
template <typename Visit>
void for_each_byte(const Text& text, std::uint64_t most_bytes, Visit visit) noexcept {
  std::uint64_t used = 0;
  for (std::uint64_t i = 0; i < text.length; ++i) {
    const std::uint32_t letter = character_of(text, i);
    const unsigned more = letter < 0x80 ? 0 : letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    used += more + 1;
    if (used > most_bytes) {
      return;
    }
    constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
    visit(static_cast<char>(kLead[more] | letter >> (6 * more)));
    for (unsigned rest = more; rest-- > 0;) {
      visit(static_cast<char>(0x80U | (letter >> (6 * rest) & 0x3fU)));
    }
  }
}

}  // namespace

bool PythonCodeTable::add_text(std::uint64_t text, std::uint64_t most_bytes,
                               Written& written) noexcept {
  const Text from = text_at(python_->layout(), text);
  if (from.width == 0) {
    return false;
  }
  std::uint64_t bytes = 0;
  for_each_byte(from, most_bytes, [&](char /*byte*/) { ++bytes; });
  std::uint64_t at = 0;
  if (bytes == 0 || !store_->take(Table::kStrings, bytes, at)) {
    return bytes == 0;
  }
  char* to = store_->item<char>(Table::kStrings, at);
  for_each_byte(from, most_bytes, [&](char byte) { *to++ = byte; });
  written = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes)};
  return true;
}

// Many code objects are of one file.
bool PythonCodeTable::add_file(std::uint64_t text, Written& written) noexcept {
  const Text from = text_at(python_->layout(), text);
  std::uint64_t hash = 0xcbf29ce484222325;
  std::uint32_t bytes = 0;
  if (from.width != 0) {
    for_each_byte(from, kMostFileBytes, [&](char byte) {
      hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
      ++bytes;
    });
  }
  hash = wire::mix(hash);
  hash = hash == 0 ? 1 : hash;
  if (const std::uint32_t known = files_.find(hash); known != HashIndex::kNone) {
    written = {known, bytes};
    return true;
  }
  if (!add_text(text, kMostFileBytes, written)) {
    return false;
  }
  files_.add(hash, written.offset);
  return true;
}

bool PythonCodeTable::add_lines(std::uint64_t bytes, Written& written) noexcept {
  const std::uint64_t size = load(bytes, kBytesSize);
  std::uint64_t at = 0;
  if (size == 0 || size > kMostLineBytes) {
    return true;  // the reader gives the first line
  }
  if (!store_->take(Table::kStrings, size, at)) {
    return false;
  }
  __builtin_memcpy(store_->item<char>(Table::kStrings, at),
                   reinterpret_cast<const void*>(bytes + kBytesData), size);
  written = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size)};
  return true;
}

std::uint32_t PythonCodeTable::add(const PythonFrame& frame) noexcept {
  const PythonLayout& layout = python_->layout();
  if (load(frame.code, kObjectType) != python_->types().code || !codes_.has_room()) {
    return wire::kNoCode;
  }
  Written file;
  Written name;
  Written lines;
  std::uint64_t number = 0;
  if (!add_file(load(frame.code, layout.code_file), file) ||
      !add_text(load(frame.code, layout.code_name), kMostNameBytes, name) ||
      !add_lines(load(frame.code, layout.code_lines), lines) ||
      !store_->take(Table::kCodes, 1, number) || number >= wire::kNoCode) {
    return wire::kNoCode;
  }
  auto& code = *store_->item<wire::PythonCode>(Table::kCodes, number);
  code.file_offset = file.offset;
  code.file_bytes = file.bytes;
  code.name_offset = name.offset;
  code.name_bytes = name.bytes;
  code.lines_offset = lines.offset;
  code.lines_bytes = lines.bytes;
  code.first_line = load_half(frame.code, layout.code_first_line);
  code.minor = layout.minor;
  std::atomic_ref(code.ready).store(1, std::memory_order_release);
  codes_.add(frame.identity, static_cast<std::uint32_t>(number));
  return static_cast<std::uint32_t>(number);
}

std::uint32_t PythonCodeTable::number_of(const PythonFrame& frame) noexcept {
  const std::uint32_t known = codes_.find(frame.identity);
  return known != HashIndex::kNone ? known : add(frame);
}

void PythonCodeTable::clear() noexcept {
  codes_.clear();
  files_.clear();
}

}  // namespace tidemark::tracer
