// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// What tests/programs/owners/heap_truth.py has written down of its own heap.
namespace tidemark::tests {

struct TrueObject {
  std::uint64_t address = 0;
  std::uint64_t type = 0;
  std::uint64_t bytes = 0;
  bool is_tracked = false;  // by the collector
  bool changes = false;     // while the program waits
  std::vector<std::uint64_t> references;
};

struct HeapTruth {
  bool is_free_threaded = false;
  std::vector<TrueObject> objects;
  std::unordered_map<std::uint64_t, std::string> type_names;
};

inline HeapTruth read_heap_truth(const std::string& path) {
  constexpr std::uint64_t kMagic = 0x31534a424f4d4454;
  constexpr std::uint64_t kTracked = 1;
  constexpr std::uint64_t kChanges = 2;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::uint64_t> words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), 8 * words.size());
  HeapTruth truth;
  if (words.size() < 7 || words[0] != kMagic) {
    ADD_FAILURE() << path << " is none of heap_truth.py";
    return truth;
  }
  truth.is_free_threaded = (words[6] & 1U) != 0;
  std::size_t at = 7;
  std::vector<std::uint64_t> counts;
  for (std::uint64_t i = 0; i < words[2]; ++i, at += 4) {
    const std::uint64_t flags = words.at(at + 3);
    truth.objects.push_back({words[at],
                             words[at + 1],
                             words[at + 2],
                             (flags & kTracked) != 0,
                             (flags & kChanges) != 0,
                             {}});
    counts.push_back(flags >> 8U);
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    for (std::uint64_t k = 0; k < counts[i]; ++k) {
      truth.objects[i].references.push_back(words.at(at++));
    }
  }
  const std::size_t names = 8 * (at + 3 * words[4]);
  for (std::uint64_t i = 0; i < words[4]; ++i, at += 3) {
    truth.type_names[words.at(at)] = bytes.substr(names + words[at + 1], words[at + 2]);
  }
  return truth;
}

}  // namespace tidemark::tests
