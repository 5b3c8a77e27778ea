// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

// From the hash of something to its number. Lock-free, private memory of the tracer, only grows.
//
// An entry is in one of two buckets of a level, each of the size of a cache line, or in the next
// one where a bucket is full. When all are full, a level of twice the size comes after it, and each
// further add() moves a few entries over, until the old level is empty and is no longer looked at:
// a search sees two levels at most. Threads that race may lose an entry or add it twice; whoever
// misses it then makes another number for the same thing, which readers put up with.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  // kNone: not there. A hash is never 0.
  std::uint32_t find(std::uint64_t hash) const noexcept;
  // False: there is no memory; the number is then not found later.
  bool add(std::uint64_t hash, std::uint32_t number) noexcept;
  void clear() noexcept;  // while no other thread uses it

  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<std::uint64_t> hash;             // 0: empty
    std::atomic<std::uint64_t> number_plus_one;  // 0: on its way
  };
  static constexpr std::size_t kBucket = 4;
  static constexpr std::size_t kChoices = 4;
  static constexpr std::size_t kLargePage = 2 << 20;
  struct alignas(64) Bucket {
    Slot slot[kBucket];
  };
  static constexpr std::size_t kLevels = 20;
  static constexpr std::size_t kFirstBuckets = 128;

  static constexpr std::size_t buckets(std::size_t level) { return kFirstBuckets << level; }
  static constexpr std::size_t bytes_of(std::size_t level) {
    return buckets(level) * sizeof(Bucket);
  }
  Bucket& bucket(std::size_t level, std::uint64_t hash, std::size_t choice) const noexcept;
  static const Slot* search(const Bucket& bucket, std::uint64_t hash, bool& full) noexcept;
  static bool put(Slot& slot, std::uint64_t hash, std::uint32_t number) noexcept;
  bool grow(std::size_t known) noexcept;
  bool add_to(std::size_t level, std::uint64_t hash, std::uint32_t number) noexcept;
  void move_some(std::size_t newest) noexcept;

  std::atomic<Bucket*> levels_[kLevels] = {};
  std::atomic<std::size_t> moved_[kLevels] = {};  // buckets that were moved on
  std::atomic<std::size_t> oldest_ = 0;           // the first level that is not yet empty
  std::atomic<std::size_t> count_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace tidemark::tracer
