// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

// From the hash of something to its number. Lock-free, private memory of the tracer, only grows.
//
// An entry is in one of a few buckets of a level, each of the size of a cache line: in the first of
// them that is not full, so that one look tells of most hashes that they are not there. When all of
// them are full, a level of twice the size comes after it, and each further add() moves a few
// entries over, until the old level is empty and is no longer looked at: a search sees two levels
// at most. Threads that race may lose an entry or add it twice; whoever misses it then makes
// another number for the same thing, which readers put up with.
//
// The upper bits of a hash are in the entry, the lower ones choose the buckets; they are kept
// beside it for the time when it is moved. Two hashes that differ are told apart but for a chance
// of one in 2^36 for each entry that is looked at.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  // It is about to be looked for or added: fetches the line of the cache where it is likely to lie.
  void prefetch(std::uint64_t hash) const noexcept;
  // kNone: not there. A hash is never 0.
  std::uint32_t find(std::uint64_t hash) const noexcept;
  // False: there is no memory; the number is then not found later.
  bool add(std::uint64_t hash, std::uint32_t number) noexcept;
  // Makes room ahead, for a time when there is no memory.
  void grow_ahead() noexcept { grow(count_.load(std::memory_order_acquire)); }
  // Of all that is there; what comes meanwhile may be missed.
  template <typename Visit>
  void for_each_hash(Visit visit) const noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t level = oldest_.load(std::memory_order_acquire); level < count; ++level) {
      const Bucket* const table = levels_[level].load(std::memory_order_relaxed);
      for (std::size_t i = 0; i < buckets(level) * kBucket; ++i) {
        const Bucket& bucket = table[i / kBucket];
        const std::uint32_t lower = bucket.lower[i % kBucket].load(std::memory_order_acquire);
        if (lower != 0) {
          visit((bucket.slot[i % kBucket].load(std::memory_order_relaxed) & ~kLowMask) |
                (lower & kLowMask));
        }
      }
    }
  }
  // False while there was no memory for what was last added: more of it would not be found either.
  bool has_room() noexcept;
  void clear() noexcept;  // while no other thread uses it

  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kBucket = 5;
  static constexpr std::size_t kChoices = 8;
  static constexpr unsigned kNumberBits = 28;
  static constexpr std::uint64_t kLowMask = (std::uint64_t{1} << kNumberBits) - 1;
  static constexpr std::uint32_t kMaxNumber = kLowMask - 1;  // the number in an entry is one more
  static constexpr std::size_t kLargePage = 2 << 20;
  struct alignas(64) Bucket {
    std::atomic<std::uint64_t> slot[kBucket];   // upper bits of the hash, number + 1; 0: empty
    std::atomic<std::uint32_t> lower[kBucket];  // bits of the hash, with kPresent; 0: not yet
  };
  static_assert(sizeof(Bucket) == 64);
  static constexpr std::uint32_t kPresent = 0x8000'0000;
  static constexpr std::size_t kLevels = 20;
  static constexpr std::size_t kFirstBuckets = 64;

  static constexpr std::size_t buckets(std::size_t level) { return kFirstBuckets << level; }
  static constexpr std::size_t bytes_of(std::size_t level) {
    return buckets(level) * sizeof(Bucket);
  }
  static std::size_t bucket_for(std::size_t level, std::uint64_t hash, std::size_t choice) noexcept;
  bool grow(std::size_t known) noexcept;
  bool add_to(std::size_t level, std::uint64_t hash, std::uint32_t number) noexcept;
  void prefetch_at(std::size_t level, std::uint64_t hash) const noexcept;
  void move_one_bucket(std::size_t newest) noexcept;

  std::atomic<Bucket*> levels_[kLevels] = {};
  std::atomic<std::size_t> moved_[kLevels] = {};  // buckets that were moved on
  std::atomic<std::size_t> oldest_ = 0;           // the first level that is not yet empty
  std::atomic<std::size_t> count_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint32_t> refused_adds_ = 0;  // since there was no memory; 0: there is
};

}  // namespace tidemark::tracer
