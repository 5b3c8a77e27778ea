// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/sys.h"

namespace tidemark::tracer {

// Tells of most hashes that were never added that they were not, from memory that stays in the
// cache. A program that starts comes from one new stack to the next, and a lookup in a large index
// misses the cache each time. A filter that holds too many hashes only saves no lookups.
//
// Lock-free. All zero is a filter without memory, for which every hash may have been added.
class BloomFilter {
 public:
  // False: not added, or by another thread just now.
  bool may_hold(std::uint64_t hash) const noexcept {
    const std::atomic<std::uint64_t>* const words = words_.load(std::memory_order_acquire);
    const std::uint64_t bits = bits_of(hash);
    return words == nullptr ||
           (words[word_of(hash)].load(std::memory_order_relaxed) & bits) == bits;
  }
  void add(std::uint64_t hash) noexcept {
    if (auto* const words = words_.load(std::memory_order_acquire)) {
      set_bits(words, hash);
    }
  }
  // Gets memory; nothing changes when there is none. `for_each(visit)` calls visit(hash) for each
  // hash that was added so far.
  template <typename ForEach>
  void enable(ForEach for_each) noexcept {
    auto* const fresh = static_cast<std::atomic<std::uint64_t>*>(sys::map_private(kBytes));
    if (fresh == nullptr) {
      return;
    }
    for_each([fresh](std::uint64_t hash) { set_bits(fresh, hash); });
    std::atomic<std::uint64_t>* none = nullptr;
    if (!words_.compare_exchange_strong(none, fresh, std::memory_order_release)) {
      sys::unmap(fresh, kBytes);  // another thread was faster
    }
  }
  void clear() noexcept {  // while no other thread uses it
    if (auto* const words = words_.exchange(nullptr, std::memory_order_relaxed)) {
      sys::unmap(words, kBytes);
    }
  }
  std::uint64_t bytes() const noexcept {
    return words_.load(std::memory_order_relaxed) == nullptr ? 0 : kBytes;
  }

 private:
  static constexpr unsigned kWordBits =
      16;  // 512 KiB: a few percent of false positives with half a million
  static constexpr std::size_t kBytes = sizeof(std::uint64_t) << kWordBits;

  static std::size_t word_of(std::uint64_t hash) noexcept { return hash >> (64 - kWordBits); }
  static std::uint64_t bits_of(std::uint64_t hash) noexcept {
    return std::uint64_t{1} << (hash >> 42U & 63U) | std::uint64_t{1} << (hash >> 36U & 63U);
  }
  static void set_bits(std::atomic<std::uint64_t>* words, std::uint64_t hash) noexcept {
    words[word_of(hash)].fetch_or(bits_of(hash), std::memory_order_relaxed);
  }

  std::atomic<std::atomic<std::uint64_t>*> words_ = nullptr;
};

}  // namespace tidemark::tracer
