// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/python_layout.h"

namespace tidemark::heap {

// The table of keys of a dictionary, which instances of a class share (PEP 412).
struct DictKeys {
  std::uint64_t entries = 0;  // address
  std::uint32_t entry_bytes = 24;
  std::uint32_t key_at = 8;  // in an entry
  std::uint32_t value_at = 16;
  std::uint64_t count = 0;  // of entries, with deleted ones
  std::uint64_t bytes = 0;  // all that was allocated

  std::uint64_t key_address(std::uint64_t index) const {
    return entries + index * entry_bytes + key_at;
  }
};
DictKeys read_dict_keys(MemoryImage& image, const PythonLayout& layout, std::uint64_t keys);

// A dict: its keys, and its values where they are apart from them.
struct DictTable {
  DictKeys keys;
  std::uint64_t values = 0;  // address of the first; 0: they are in the entries
  std::uint64_t bytes = 0;   // all that was allocated for it, without what is shared
};
DictTable read_dict(MemoryImage& image, const PythonLayout& layout, std::uint64_t dict);

// Calls visit(key, value) for each item, until it returns false.
template <typename Visit>
void for_each_item(MemoryImage& image, const DictTable& table, Visit visit) {
  constexpr std::uint64_t kAtOnce = 1024;
  constexpr std::uint64_t kMostEmpty = 1U << 24U;  // of real ones; else the number is none
  const DictKeys& keys = table.keys;
  std::vector<char> entries;
  std::uint64_t empty = 0;
  for (std::uint64_t first = 0; first < keys.count && empty < kMostEmpty; first += kAtOnce) {
    const std::uint64_t count = std::min(kAtOnce, keys.count - first);
    entries.resize(count * keys.entry_bytes);
    if (!image.read(keys.entries + first * keys.entry_bytes, entries)) {
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const char* const entry = entries.data() + i * keys.entry_bytes;
      std::uint64_t key = 0;
      std::uint64_t value = 0;
      std::memcpy(&key, entry + keys.key_at, sizeof(key));
      std::memcpy(&value, entry + keys.value_at, sizeof(value));
      if (table.values != 0) {
        value = image.word(table.values + 8 * (first + i));
      }
      empty = value == 0 ? empty + 1 : 0;
      if (value != 0 && !visit(key, value)) {
        return;
      }
    }
  }
}

}  // namespace tidemark::heap
