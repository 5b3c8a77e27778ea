// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

// A hash table from the hash of something to its number. Lock-free, in private memory, which only
// grows.
//
// A hash has a few candidate buckets in a level, each of the size of a cache line, and its entry is
// in the first of them that was not full: for most hashes that are not there one bucket tells that.
// When all candidates are full a level of twice the size is added, and each further add() moves one
// bucket over until the old level is empty and is no longer searched: find() looks at two levels at
// most. Threads that race may lose an entry, add it twice, or leave one that was removed: then the
// same thing gets a second number, which readers must expect, and whoever removes entries must
// check that what find() says is still true.
//
// The upper bits of a hash are in the entry, the lower ones choose the buckets; these are stored
// beside it because they are needed when it is moved. Two different hashes are taken for the same
// with a probability of 2^-36 for each entry that is compared.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  // Before find() or add(): fetches the cache line that most likely holds the entry.
  void prefetch(std::uint64_t hash) const noexcept;
  // kNone: not found. A hash must not be 0.
  std::uint32_t find(std::uint64_t hash) const noexcept;
  // False: there is no memory; the hash will not be found. Takes the place of another number that
  // the hash had.
  bool add(std::uint64_t hash, std::uint32_t number) noexcept;
  // Of the hash only the lower 28 bits matter.
  void remove(std::uint64_t hash, std::uint32_t number) noexcept;
  // Makes room for a time when there is no memory.
  void grow_ahead() noexcept { grow(count_.load(std::memory_order_acquire)); }
  // Entries that are added meanwhile may be missed.
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
  // False since an add() failed, but for one call in 1024, after which add() should be tried again.
  bool has_room() noexcept;
  void clear() noexcept;  // while no other thread uses it

  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kBucket = 5;
  static constexpr std::size_t kChoices = 16;
  static constexpr unsigned kNumberBits = 28;
  static constexpr std::uint64_t kLowMask = (std::uint64_t{1} << kNumberBits) - 1;
  static constexpr std::uint32_t kMaxNumber = kLowMask - 1;  // an entry holds the number plus one
  static constexpr std::size_t kLargePage = 2 << 20;
  static constexpr std::uint64_t kRemoved = ~kLowMask;  // a slot that may be used again
  struct alignas(64) Bucket {
    std::atomic<std::uint64_t> slot[kBucket];  // upper bits of the hash, number + 1; 0: never used
    std::atomic<std::uint32_t>
        lower[kBucket];  // bits of the hash, and kPresent; 0: not written yet
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
  enum class Same { kStays, kIsReplaced };
  bool grow(std::size_t known) noexcept;
  bool add_to(std::size_t level, std::uint64_t hash, std::uint32_t number, Same same) noexcept;
  void prefetch_at(std::size_t level, std::uint64_t hash) const noexcept;
  void move_one_bucket(std::size_t newest) noexcept;

  std::atomic<Bucket*> levels_[kLevels] = {};
  std::atomic<std::size_t> moved_[kLevels] = {};  // buckets that were moved to the newest level
  std::atomic<std::size_t> oldest_ = 0;           // the first level that is not yet empty
  std::atomic<std::size_t> count_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint32_t> refused_adds_ =
      0;  // calls of has_room() since an add() failed; 0: none failed
};

}  // namespace tidemark::tracer
