// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_dicts.h"

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 30U;

// Of 3.9 and 3.10: the width of an index follows from their number.
DictKeys old_keys(MemoryImage& image, std::uint64_t address) {
  constexpr std::uint64_t kHeadBytes = 40;
  const std::uint64_t size = image.word(address + 8);
  const std::uint64_t index_bytes = size <= 0xff         ? 1
                                    : size <= 0xffff     ? 2
                                    : size <= 0xffffffff ? 4
                                                         : 8;
  DictKeys keys;
  if (size > 2 * kMostEntries) {
    return keys;
  }
  keys.entries = address + kHeadBytes + size * index_bytes;
  keys.count = image.word(address + 32);
  keys.bytes = kHeadBytes + size * index_bytes + (size << 1U) / 3 * keys.entry_bytes;
  return keys;
}

struct KeysHead {
  std::uint8_t log2_size;
  std::uint8_t log2_index_bytes;
  std::uint8_t kind;
};

DictKeys new_keys(MemoryImage& image, std::uint64_t address) {
  constexpr std::uint64_t kHeadBytes = 32;
  const auto head = image.load<KeysHead>(address + 8);
  DictKeys keys;
  if (head.log2_size > 40 || head.log2_index_bytes > 43) {
    return keys;
  }
  if (head.kind != 0) {  // all keys are texts: their hashes are in them
    keys.entry_bytes = 16;
    keys.key_at = 0;
    keys.value_at = 8;
  }
  const std::uint64_t index_bytes = std::uint64_t{1} << head.log2_index_bytes;
  keys.entries = address + kHeadBytes + index_bytes;
  keys.count = image.word(address + 24);
  keys.bytes =
      kHeadBytes + index_bytes + (std::uint64_t{2} << head.log2_size) / 3 * keys.entry_bytes;
  return keys;
}

}  // namespace

DictKeys read_dict_keys(MemoryImage& image, const PythonLayout& layout, std::uint64_t keys) {
  if (keys == 0) {
    return {};
  }
  DictKeys read = layout.minor <= 10 ? old_keys(image, keys) : new_keys(image, keys);
  if (read.count > kMostEntries || image.mapping_at(read.entries) == nullptr) {
    read.count = 0;
    read.bytes = 0;
  }
  return read;
}

DictTable read_dict(MemoryImage& image, const PythonLayout& layout, std::uint64_t dict) {
  DictTable table;
  const std::uint64_t keys = image.word(dict + 32 + layout.shift);
  const std::uint64_t values = image.word(dict + 40 + layout.shift);
  table.keys = read_dict_keys(image, layout, keys);
  if (image.word(keys) == 1) {  // its number of references: it is not shared
    table.bytes = table.keys.bytes;
  }
  if (values == 0) {
    return table;
  }
  table.values = layout.minor >= 13 ? values + 8 : values;
  if (layout.minor <= 10) {
    table.bytes += (image.word(keys + 8) << 1U) / 3 * 8;
  } else if (layout.minor <= 12 || image.load<std::uint8_t>(values + 2) == 0) {
    // All that the keys have room for. From 3.13 on they may lie in the instance.
    table.bytes += 8 * (image.word(keys + 16) + table.keys.count);
  }
  if (table.bytes > 16 * kMostEntries) {
    table.bytes = 0;
  }
  return table;
}

}  // namespace tidemark::heap
