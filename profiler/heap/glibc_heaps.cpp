// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/glibc_heaps.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "common/text.h"

namespace tidemark::heap {
namespace {

using inject::AddressRange;
using inject::Mapping;

constexpr std::uint64_t kHeapBytes = 64U << 20U;  // HEAP_MAX_SIZE
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kBins = 127;
constexpr std::uint64_t kMostChunks = 4'000'000;
constexpr std::uint64_t kMostArenas = 4096;

// Where malloc_state has what is read of it. 2.27 has put a word before the lists.
struct StateLayout {
  std::uint64_t top;
  std::uint64_t bins;
  std::uint64_t next() const { return bins + 16 * kBins + 16; }  // behind the map of bins
  std::uint64_t attached_threads() const { return next() + 16; }
  std::uint64_t system_bytes() const { return next() + 24; }
  std::uint64_t most_system_bytes() const { return next() + 32; }
};
constexpr std::array<StateLayout, 2> kLayouts{{{96, 112}, {88, 104}}};

// At the start of a heap that is not [heap].
struct HeapInfo {
  std::uint64_t state = 0;
  std::uint64_t previous = 0;
  std::uint64_t bytes = 0;
  std::uint64_t readable_bytes = 0;
};

struct Chunk {
  std::uint64_t previous_size = 0;
  std::uint64_t size_and_flags = 0;
  std::uint64_t next = 0;
  std::uint64_t previous = 0;

  std::uint64_t size() const { return size_and_flags & ~std::uint64_t{7}; }
};
constexpr std::uint64_t kSmallestChunk = 32;

bool is_plain_memory(const Mapping& mapping) {
  return mapping.is_writable && mapping.is_readable && !mapping.is_shared &&
         (mapping.name.empty() || mapping.name.starts_with("[anon"));
}

std::uint64_t heap_start(std::uint64_t address) { return address - address % kHeapBytes; }

class HeapFinder {
 public:
  HeapFinder(const std::vector<Mapping>& mappings, const MemoryQueries& queries,
             const std::function<bool()>& is_over)
      : mappings_(mappings), queries_(queries), is_over_(is_over) {}

  MallocHeaps find() {
    find_heaps();
    find_main_heap();
    std::sort(found_.heaps.begin(), found_.heaps.end(),
              [](const auto& a, const auto& b) { return a.range.begin < b.range.begin; });
    for (const StateLayout& layout : kLayouts) {
      if (const std::uint64_t main = find_main_state(layout); main != 0) {
        found_.knows_free = true;
        add_free(layout, main);
        break;
      }
    }
    return std::move(found_);
  }

 private:
  std::uint64_t word(std::uint64_t address) const {
    return queries_.load<std::uint64_t>(address).value_or(0);
  }

  void find_heaps() {
    std::vector<std::pair<AddressRange, HeapInfo>> candidates;
    for (const Mapping& mapping : mappings_) {
      if (!is_plain_memory(mapping)) {
        continue;
      }
      std::uint64_t at = heap_start(mapping.range.begin + kHeapBytes - 1);
      for (; at < mapping.range.end && !is_over_(); at += kHeapBytes) {
        const auto info = queries_.load<HeapInfo>(at);
        if (info && is_heap(at, *info)) {
          candidates.emplace_back(AddressRange{at, at + kHeapBytes}, *info);
        }
      }
    }
    const auto is_candidate = [&](std::uint64_t start) {
      return std::any_of(candidates.begin(), candidates.end(),
                         [&](const auto& each) { return each.first.begin == start; });
    };
    for (const auto& [range, info] : candidates) {
      // The first heap of an arena has its state, and later ones lead back to it.
      if (is_candidate(heap_start(info.state)) &&
          (info.previous == 0 || is_candidate(info.previous))) {
        found_.heaps.push_back({range, false, 0});
        states_.push_back(info.state);
      }
    }
    std::sort(states_.begin(), states_.end());
    states_.erase(std::unique(states_.begin(), states_.end()), states_.end());
  }

  static bool is_heap(std::uint64_t at, const HeapInfo& info) {
    constexpr std::uint64_t kMostBeforeState = 256;
    const std::uint64_t offset = info.state % kHeapBytes;
    return info.bytes != 0 && info.bytes % kPage == 0 && info.bytes <= info.readable_bytes &&
           info.readable_bytes % kPage == 0 && info.readable_bytes <= kHeapBytes &&
           offset >= sizeof(HeapInfo) && offset <= kMostBeforeState &&
           info.previous % kHeapBytes == 0 && (info.previous != 0 || heap_start(info.state) == at);
  }

  // It may grow while it is read.
  void find_main_heap() {
    for (std::size_t i = 0; i < mappings_.size(); ++i) {
      if (mappings_[i].name == "[heap]") {
        const AddressRange& range = mappings_[i].range;
        const std::uint64_t next =
            i + 1 < mappings_.size() ? mappings_[i + 1].range.begin : UINT64_MAX;
        found_.heaps.push_back({{range.begin, std::min(range.end + kHeapBytes, next)}, true, 0});
      }
    }
  }

  MallocHeap* heap_at(std::uint64_t address) {
    const auto heap =
        std::upper_bound(found_.heaps.begin(), found_.heaps.end(), address,
                         [](std::uint64_t at, const auto& each) { return at < each.range.end; });
    return heap == found_.heaps.end() || !heap->range.holds(address) ? nullptr : &*heap;
  }

  // It is a variable of libc, or of a program that has libc in it.
  std::uint64_t find_main_state(const StateLayout& layout) {
    const bool is_dynamic =
        std::any_of(mappings_.begin(), mappings_.end(), [](const Mapping& mapping) {
          return basename_of(mapping.name).starts_with("libc.so") ||
                 basename_of(mapping.name).starts_with("libc-2");
        });
    for (const Mapping& mapping : mappings_) {
      const std::string_view file = basename_of(mapping.name);
      const bool is_libc = file.starts_with("libc.so") || file.starts_with("libc-2");
      if (!mapping.is_writable || mapping.is_shared || !mapping.name.starts_with('/') ||
          is_libc != is_dynamic) {
        continue;
      }
      if (const std::uint64_t at = find_main_state_in(mapping.range, layout); at != 0) {
        return at;
      }
    }
    return 0;
  }

  std::uint64_t find_main_state_in(const AddressRange& range, const StateLayout& layout) {
    constexpr std::uint64_t kMostBytes = 8U << 20U;
    const std::uint64_t bytes = std::min(range.end - range.begin, kMostBytes);
    std::vector<std::uint64_t> words(bytes / 8);
    for (std::uint64_t page = 0; page + kPage <= bytes; page += kPage) {
      (void)queries_.read(range.begin + page,
                          {reinterpret_cast<char*>(words.data()) + page, kPage});
    }
    const std::uint64_t next = layout.next() / 8;
    for (std::uint64_t word = 0; word + next < words.size(); word += 2) {
      const std::uint64_t at = range.begin + 8 * word;
      if (is_state(words[word + next], at) && is_main_state(at, layout)) {
        return at;
      }
    }
    return 0;
  }

  // The states of all arenas are a ring.
  bool is_state(std::uint64_t address, std::uint64_t main) const {
    return address == main || std::binary_search(states_.begin(), states_.end(), address);
  }

  bool is_main_state(std::uint64_t at, const StateLayout& layout) {
    const std::uint64_t top = word(at + layout.top);
    const std::uint64_t system = word(at + layout.system_bytes());
    const MallocHeap* const heap = heap_at(top);
    if (system == 0 || system > word(at + layout.most_system_bytes()) || heap == nullptr ||
        !heap->is_main) {
      return false;
    }
    for (std::uint64_t bin = 0; bin < kBins; ++bin) {
      const std::uint64_t link = word(at + layout.bins + 16 * bin);
      const bool is_empty = link == at + layout.bins + 16 * bin - 16;
      if (!is_empty && heap_at(link) == nullptr) {
        return false;
      }
    }
    return true;
  }

  void add_free(const StateLayout& layout, std::uint64_t main) {
    std::vector<std::uint64_t> states = states_;
    states.resize(std::min<std::size_t>(states.size(), kMostArenas));
    states.push_back(main);
    for (const std::uint64_t state : states) {
      for (std::uint64_t bin = 0; bin < kBins; ++bin) {
        if (!add_bin(state + layout.bins + 16 * bin - 16)) {
          found_.is_partial = true;
        }
      }
      const std::uint64_t top = word(state + layout.top);
      const auto chunk = queries_.load<Chunk>(top);
      MallocHeap* const heap = heap_at(top);
      if (chunk && heap != nullptr) {
        heap->free_bytes += present_bytes(top, std::min(chunk->size(), heap->range.end - top));
      }
    }
  }

  // False: not all of its chunks could be seen. A list that changes while it is read is read again.
  bool add_bin(std::uint64_t head) {
    constexpr int kAttempts = 3;
    std::vector<std::pair<MallocHeap*, std::uint64_t>> longest;
    bool is_whole = false;
    for (int attempt = 0; attempt < kAttempts && !is_whole && !is_over_(); ++attempt) {
      std::vector<std::pair<MallocHeap*, std::uint64_t>> found;
      is_whole = read_bin(head, found);
      if (is_whole || found.size() > longest.size()) {
        longest = std::move(found);
      }
    }
    for (const auto& [heap, bytes] : longest) {
      heap->free_bytes += bytes;
    }
    return is_whole;
  }

  bool read_bin(std::uint64_t head, std::vector<std::pair<MallocHeap*, std::uint64_t>>& found) {
    std::uint64_t before = head;
    std::uint64_t seen = 0;  // that comes again in a ring
    for (std::uint64_t at = word(head + 16); at != head;) {
      MallocHeap* const heap = heap_at(at);
      const auto chunk = heap != nullptr && at % 16 == 0 ? queries_.load<Chunk>(at) : std::nullopt;
      if (!chunk || chunk->previous != before || chunk->size() < kSmallestChunk ||
          chunk->size() > heap->range.end - at || at == seen || ++chunks_ > kMostChunks ||
          is_over_()) {
        return false;
      }
      found.emplace_back(heap, present_bytes(at, chunk->size()));
      if (std::has_single_bit(found.size())) {
        seen = at;
      }
      before = at;
      at = chunk->next;
    }
    return true;
  }

  // Pages within large chunks may have been given back.
  std::uint64_t present_bytes(std::uint64_t at, std::uint64_t bytes) const {
    if (bytes < 2 * kPage) {
      return bytes;
    }
    const std::uint64_t first = (at + kPage - 1) / kPage * kPage;
    const std::uint64_t last = (at + bytes) / kPage * kPage;
    return queries_.present_bytes(first, last) + (first - at) + (at + bytes - last);
  }

  const std::vector<Mapping>& mappings_;
  const MemoryQueries& queries_;
  const std::function<bool()>& is_over_;
  MallocHeaps found_;
  std::vector<std::uint64_t> states_;  // of arenas of threads, by address
  std::uint64_t chunks_ = 0;
};

}  // namespace

MallocHeaps find_malloc_heaps(const std::vector<Mapping>& mappings, const MemoryQueries& queries,
                              const std::function<bool()>& is_over) {
  return HeapFinder(mappings, queries, is_over).find();
}

// A heap is what its threads may use, and the rest of its 64 MiB, which nobody may.
MallocHeaps guess_malloc_heaps(const std::vector<Mapping>& mappings) {
  MallocHeaps found;
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const Mapping& mapping = mappings[i];
    if (mapping.name == "[heap]") {
      found.heaps.push_back({mapping.range, true, 0});
      continue;
    }
    const bool has_rest = i + 1 < mappings.size() && !mappings[i + 1].is_readable &&
                          mappings[i + 1].name.empty() &&
                          mappings[i + 1].range.begin == mapping.range.end &&
                          mappings[i + 1].range.end >= mapping.range.begin + kHeapBytes;
    if (is_plain_memory(mapping) && mapping.range.begin % kHeapBytes == 0 && has_rest &&
        mapping.range.end - mapping.range.begin < kHeapBytes) {
      found.heaps.push_back({mapping.range, false, 0});
    }
  }
  return found;
}

}  // namespace tidemark::heap
