// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/hash_index.h"

#include "profiler/tracer/sys.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {

// Two positions from the lower bits of the hash, then the buckets after each of them.
std::size_t HashIndex::bucket_for(std::size_t level, std::uint64_t hash,
                                  std::size_t choice) noexcept {
  const std::uint64_t low = hash & kLowMask;
  const std::uint64_t place = choice % 2 == 0 ? low : (low * 0x9e3779b97f4a7c15) >> 36U;
  return (place + choice / 2) & (buckets(level) - 1);
}

void HashIndex::prefetch_at(std::size_t level, std::uint64_t hash) const noexcept {
  const Bucket* const table = levels_[level].load(std::memory_order_relaxed);
  __builtin_prefetch(table + bucket_for(level, hash, 0));
}

void HashIndex::prefetch(std::uint64_t hash) const noexcept {
  if (const std::size_t count = count_.load(std::memory_order_acquire); count > 0) {
    prefetch_at(count - 1, hash);
  }
}

std::uint32_t HashIndex::find(std::uint64_t hash) const noexcept {
  const std::size_t oldest = oldest_.load(std::memory_order_acquire);
  for (std::size_t level = count_.load(std::memory_order_acquire); level-- > oldest;) {
    const Bucket* const table = levels_[level].load(std::memory_order_relaxed);
    for (std::size_t choice = 0; choice < kChoices; ++choice) {
      const Bucket& bucket = table[bucket_for(level, hash, choice)];
      std::uint64_t found = 0;
      std::uint64_t last = 0;
#pragma GCC unroll 5
      for (const auto& slot : bucket.slot) {  // without a branch, which could not be predicted
        last = slot.load(std::memory_order_relaxed);
        found = last >> kNumberBits == hash >> kNumberBits ? last : found;
      }
      if ((found & kLowMask) != 0) {
        return static_cast<std::uint32_t>((found & kLowMask) - 1);
      }
      if (last == 0) {  // slots are filled in order
        break;
      }
    }
  }
  return kNone;
}

// `same`: what becomes of an entry with this hash.
bool HashIndex::add_to(std::size_t level, std::uint64_t hash, std::uint32_t number,
                       Same same) noexcept {
  Bucket* const table = levels_[level].load(std::memory_order_relaxed);
  const std::uint64_t entry = (hash & ~kLowMask) | (std::uint64_t{number} + 1);
  for (std::size_t choice = 0; choice < kChoices; ++choice) {
    Bucket& bucket = table[bucket_for(level, hash, choice)];
    for (std::size_t i = 0; i < kBucket; ++i) {
      std::uint64_t there = bucket.slot[i].load(std::memory_order_relaxed);
      const bool is_same = there >> kNumberBits == hash >> kNumberBits && (there & kLowMask) != 0;
      if (is_same && same == Same::kStays) {
        return true;
      }
      if ((there == 0 || there == kRemoved || is_same) &&
          bucket.slot[i].compare_exchange_strong(there, entry, std::memory_order_release)) {
        const auto low = static_cast<std::uint32_t>(hash & kLowMask);
        bucket.lower[i].store(low | kPresent, std::memory_order_release);
        return true;
      }
    }
  }
  return false;
}

void HashIndex::remove(std::uint64_t hash, std::uint32_t number) noexcept {
  const std::size_t oldest = oldest_.load(std::memory_order_acquire);
  for (std::size_t level = count_.load(std::memory_order_acquire); level-- > oldest;) {
    Bucket* const table = levels_[level].load(std::memory_order_relaxed);
    for (std::size_t choice = 0; choice < kChoices; ++choice) {
      Bucket& bucket = table[bucket_for(level, hash, choice)];
      std::uint64_t there = 0;
      for (std::size_t i = 0; i < kBucket; ++i) {
        there = bucket.slot[i].load(std::memory_order_relaxed);
        if ((there & kLowMask) == std::uint64_t{number} + 1) {
          bucket.lower[i].store(0, std::memory_order_relaxed);  // not moved to another level
          bucket.slot[i].compare_exchange_strong(there, kRemoved, std::memory_order_release);
          return;
        }
      }
      if (there == 0) {
        break;
      }
    }
  }
}

void HashIndex::move_one_bucket(std::size_t newest) noexcept {
  const std::size_t oldest = oldest_.load(std::memory_order_acquire);
  if (oldest >= newest) {
    return;
  }
  const std::size_t which = moved_[oldest].fetch_add(1, std::memory_order_relaxed);
  if (which >= buckets(oldest)) {
    return;  // other threads are moving the last ones
  }
  Bucket* const table = levels_[oldest].load(std::memory_order_relaxed);
  if (which + 1 < buckets(oldest)) {
    for (const auto& lower : table[which + 1].lower) {  // the bucket that is moved next
      prefetch_at(newest, lower.load(std::memory_order_relaxed) & kLowMask);
    }
  }
  for (std::size_t i = 0; i < kBucket; ++i) {
    const std::uint64_t entry = table[which].slot[i].load(std::memory_order_relaxed);
    const std::uint32_t low = table[which].lower[i].load(std::memory_order_acquire);
    if ((entry & kLowMask) != 0 && low != 0) {
      add_to(newest, (entry & ~kLowMask) | (low & kLowMask),
             static_cast<std::uint32_t>((entry & kLowMask) - 1), Same::kStays);
    }
  }
  if (which + 1 == buckets(oldest)) {
    oldest_.store(oldest + 1, std::memory_order_release);
    // Not unmapped: another thread may still search it, and then finds zeros.
    sys::madvise(table, bytes_of(oldest), MADV_DONTNEED);
    bytes_.fetch_sub(bytes_of(oldest), std::memory_order_relaxed);
  }
}

bool HashIndex::grow(std::size_t known) noexcept {
  if (known >= kLevels) {
    return false;
  }
  auto* const fresh = static_cast<Bucket*>(sys::map_private(bytes_of(known)));
  if (fresh == nullptr) {
    return false;
  }
  if (bytes_of(known) >= kLargePage) {  // accessed at random: fewer page faults and TLB misses
    sys::madvise(fresh, bytes_of(known), MADV_HUGEPAGE);
  }
  Bucket* none = nullptr;
  if (levels_[known].compare_exchange_strong(none, fresh, std::memory_order_release)) {
    bytes_.fetch_add(bytes_of(known), std::memory_order_relaxed);
  } else {
    sys::unmap(fresh, bytes_of(known));  // another thread has added this level
  }
  std::size_t count = known;  // also for another thread, which may have been stopped before this
  count_.compare_exchange_strong(count, known + 1, std::memory_order_release);
  return true;
}

bool HashIndex::add(std::uint64_t hash, std::uint32_t number) noexcept {
  if (number > kMaxNumber) {
    return false;
  }
  for (std::size_t tries = 0; tries < kLevels; ++tries) {
    const std::size_t known = count_.load(std::memory_order_acquire);
    if (known > 0) {
      move_one_bucket(known - 1);
      if (add_to(known - 1, hash, number, Same::kIsReplaced)) {
        refused_adds_.store(0, std::memory_order_relaxed);
        return true;
      }
    }
    if (!grow(known)) {
      break;
    }
  }
  refused_adds_.store(1, std::memory_order_relaxed);
  return false;
}

bool HashIndex::has_room() noexcept {
  constexpr std::uint32_t kRetryEvery = 1024;
  const std::uint32_t refused = refused_adds_.load(std::memory_order_relaxed);
  return refused == 0 || refused_adds_.fetch_add(1, std::memory_order_relaxed) % kRetryEvery == 0;
}

void HashIndex::clear() noexcept {
  count_.store(0, std::memory_order_relaxed);
  oldest_.store(0, std::memory_order_relaxed);
  for (std::size_t level = 0; level < kLevels; ++level) {
    moved_[level].store(0, std::memory_order_relaxed);
    if (Bucket* const table = levels_[level].exchange(nullptr, std::memory_order_relaxed)) {
      sys::unmap(table, bytes_of(level));
    }
  }
  bytes_.store(0, std::memory_order_relaxed);
  refused_adds_.store(0, std::memory_order_relaxed);
}

}  // namespace tidemark::tracer
