// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_arenas.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace tidemark::heap {
namespace {

using inject::AddressRange;
using inject::Mapping;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostScannedBytes = 32U << 20U;
constexpr std::size_t kMostArenas = 1U << 20U;
// Of entries without an arena each but the last leads to another one.
constexpr std::size_t kMostEnds = 2;

struct ArenaSizes {
  std::uint64_t arena_bytes;
  std::uint64_t pool_bytes;
};

// struct arena_object.
struct ArenaEntry {
  std::uint64_t address = 0;  // 0: no arena now
  std::uint64_t next_pool = 0;
  std::uint32_t free_pools = 0;
  std::uint32_t pools = 0;
  std::uint64_t first_free_pool = 0;
  std::uint64_t next_arena = 0;
  std::uint64_t previous_arena = 0;
};
static_assert(sizeof(ArenaEntry) == 48);

// struct pool_header.
struct PoolHeader {
  std::uint64_t used_blocks = 0;
  std::uint64_t first_free = 0;
  std::uint64_t next = 0;
  std::uint64_t previous = 0;
  std::uint32_t arena = 0;
  std::uint32_t size_class = 0;
  std::uint32_t next_offset = 0;
  std::uint32_t most_next_offset = 0;

  std::uint64_t block_bytes() const { return (std::uint64_t{size_class} + 1) * 16; }
};

class ArenaFinder {
 public:
  ArenaFinder(const std::vector<Mapping>& mappings, const PythonRuntime& runtime,
              const MemoryQueries& queries)
      : mappings_(mappings),
        runtime_(runtime),
        queries_(queries),
        sizes_(runtime.layout.minor < 10 ? ArenaSizes{256U << 10U, 4U << 10U}
                                         : ArenaSizes{1U << 20U, 16U << 10U}) {}

  // The table is the variable that leads to most: others lead into the middle of it.
  std::vector<PythonArena> find() {
    std::vector<PythonArena> found;
    std::uint64_t scanned = 0;
    for (std::size_t i = 0; i < mappings_.size(); ++i) {
      if (!is_data_of_python(i)) {
        continue;
      }
      const AddressRange range = mappings_[i].range;
      for (std::uint64_t page = range.begin; page < range.end; page += kPage) {
        scanned += kPage;
        if (scanned > kMostScannedBytes) {
          return found;
        }
        scan_page(page, found);
      }
    }
    std::sort(found.begin(), found.end(), [](const PythonArena& a, const PythonArena& b) {
      return a.range.begin < b.range.begin;
    });
    return found;
  }

 private:
  // What the runtime lies in, and what follows it: variables that have a value, and those that have
  // none at first.
  bool is_data_of_python(std::size_t i) const {
    const Mapping& mapping = mappings_[i];
    if (!mapping.is_writable || mapping.is_shared) {
      return false;
    }
    const Mapping* const own = inject::mapping_at(mappings_, runtime_.address);
    if (own == nullptr) {
      return false;
    }
    const std::string_view file =
        own->name.empty() && own > mappings_.data() ? (own - 1)->name : own->name;
    const bool is_behind = mapping.name.empty() && i > 0 && mappings_[i - 1].name == file &&
                           mappings_[i - 1].range.end == mapping.range.begin;
    return mapping.name == file || is_behind;
  }

  void scan_page(std::uint64_t page, std::vector<PythonArena>& found) {
    std::array<std::uint64_t, kPage / 8> words;
    if (!queries_.read(page, {reinterpret_cast<char*>(words.data()), sizeof words})) {
      return;
    }
    for (const std::uint64_t word : words) {
      // A table begins with an arena mostly, or with the place of one that was given back.
      if (word == 0 || word % 8 != 0 || table_.holds(word) || !is_plain(word)) {
        continue;
      }
      Table table = read_table(word);
      if (table.arenas.size() > found.size()) {
        found = std::move(table.arenas);
        table_ = {word, table.end};
      }
    }
  }

  bool is_plain(std::uint64_t address) const {
    const Mapping* const mapping = inject::mapping_at(mappings_, address);
    return mapping != nullptr && mapping->is_writable && !mapping->is_shared &&
           !mapping->name.starts_with('/');
  }

  struct Table {
    std::vector<PythonArena> arenas;
    std::uint64_t end = 0;
  };
  Table read_table(std::uint64_t begin) const {
    Table table;
    std::size_t ends = 0;
    for (std::size_t number = 0; number < kMostArenas && ends < kMostEnds; ++number) {
      const std::uint64_t at = begin + number * sizeof(ArenaEntry);
      const auto entry = queries_.load<ArenaEntry>(at);
      if (!entry || !may_be_entry(*entry, begin)) {
        break;
      }
      if (entry->address != 0) {
        const auto used_bytes = used_bytes_of(*entry, number);
        if (!used_bytes) {
          break;
        }
        table.arenas.push_back(
            {{entry->address, entry->address + sizes_.arena_bytes}, *used_bytes});
      } else if (entry->next_arena == 0) {
        ++ends;
      }
      table.end = at + sizeof(ArenaEntry);
    }
    return table;
  }

  bool may_be_entry(const ArenaEntry& entry, std::uint64_t table) const {
    if (entry.address == 0) {
      const std::uint64_t offset = entry.next_arena - table;
      return entry.next_arena == 0 ||
             (offset % sizeof(ArenaEntry) == 0 && offset / sizeof(ArenaEntry) < kMostArenas);
    }
    const std::uint64_t end = entry.address + sizes_.arena_bytes;
    const auto all_pools = static_cast<std::uint32_t>(sizes_.arena_bytes / sizes_.pool_bytes);
    const auto is_inside = [&](std::uint64_t pool) {
      return pool % sizes_.pool_bytes == 0 && pool >= entry.address && pool <= end;
    };
    return entry.address % kPage == 0 && is_plain(entry.address) && is_inside(entry.next_pool) &&
           (entry.pools == all_pools || entry.pools + 1 == all_pools) &&
           entry.free_pools <= entry.pools &&
           (entry.first_free_pool == 0 || is_inside(entry.first_free_pool));
  }

  // nullopt: it is no arena.
  std::optional<std::uint64_t> used_bytes_of(const ArenaEntry& entry, std::size_t number) const {
    const std::uint64_t first =
        (entry.address + sizes_.pool_bytes - 1) / sizes_.pool_bytes * sizes_.pool_bytes;
    std::uint64_t used = 0;
    std::size_t pools = 0;
    std::size_t others = 0;
    for (std::uint64_t pool = first; pool < entry.next_pool; pool += sizes_.pool_bytes) {
      const auto header = queries_.load<PoolHeader>(pool);
      if (!header) {
        continue;  // swapped out
      }
      if (header->arena != number || header->size_class >= 32 ||
          header->most_next_offset + header->block_bytes() != sizes_.pool_bytes) {
        ++others;
        continue;
      }
      ++pools;
      const std::uint64_t blocks = header->used_blocks & 0xffffffffU;  // the rest is no part of it
      used += std::min(blocks * header->block_bytes(), sizes_.pool_bytes - sizeof(PoolHeader));
    }
    // One that is made right now has no class yet.
    return pools > others ? std::optional(used) : std::nullopt;
  }

  const std::vector<Mapping>& mappings_;
  const PythonRuntime& runtime_;
  const MemoryQueries& queries_;
  const ArenaSizes sizes_;
  AddressRange table_;  // the best one so far: what leads into its middle has fewer arenas
};

}  // namespace

std::vector<PythonArena> find_python_arenas(const std::vector<Mapping>& mappings,
                                            const PythonRuntime& runtime,
                                            const MemoryQueries& queries) {
  if (runtime.layout.is_free_threaded) {
    return {};
  }
  return ArenaFinder(mappings, runtime, queries).find();
}

}  // namespace tidemark::heap
