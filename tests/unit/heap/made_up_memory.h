// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>

#include "profiler/heap/memory_queries.h"
#include "profiler/inject/remote_modules.h"

namespace tidemark::tests {

inline inject::Mapping made_up_mapping(std::uint64_t begin, std::uint64_t end,
                                       const std::string& name = "") {
  inject::Mapping mapping;
  mapping.range = {begin, end};
  mapping.is_writable = true;
  mapping.name = name;
  return mapping;
}

// Words at addresses; what nothing was put at is 0. All pages are there but those that are removed.
class MadeUpMemory {
 public:
  static constexpr std::uint64_t kPage = 4096;

  void put(std::uint64_t address, std::uint64_t word) { words_[address] = word; }
  std::uint64_t word(std::uint64_t address) const {
    const auto known = words_.find(address);
    return known == words_.end() ? 0 : known->second;
  }
  template <typename Record>
  void put_record(std::uint64_t address, const Record& record) {
    static_assert(sizeof(Record) % 8 == 0);
    for (std::size_t at = 0; at < sizeof record; at += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, reinterpret_cast<const char*>(&record) + at, 8);
      put(address + at, value);
    }
  }
  void remove_page(std::uint64_t address) { removed_.insert(address / kPage); }

  heap::MemoryQueries queries() const {
    return {[this](std::uint64_t address, std::span<char> into) {
              for (std::size_t at = 0; at < into.size(); at += 8) {
                if (removed_.contains((address + at) / kPage)) {
                  return false;
                }
                const std::uint64_t value = word(address + at);
                std::memcpy(into.data() + at, &value, std::min<std::size_t>(8, into.size() - at));
              }
              return true;
            },
            [this](std::uint64_t begin, std::uint64_t end) {
              std::uint64_t bytes = 0;
              for (std::uint64_t page = (begin + kPage - 1) / kPage; page < end / kPage; ++page) {
                bytes += removed_.contains(page) ? 0 : kPage;
              }
              return bytes;
            }};
  }

 private:
  std::map<std::uint64_t, std::uint64_t> words_;
  std::set<std::uint64_t> removed_;
};

}  // namespace tidemark::tests
