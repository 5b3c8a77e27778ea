// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/hash_index.h"

#include "profiler/tracer/sys.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {

// Choices 0 and 1 by the hash; 2 and 3 are the buckets after them.
HashIndex::Bucket& HashIndex::bucket(std::size_t level, std::uint64_t hash,
                                     std::size_t choice) const noexcept {
  const std::uint64_t place = (choice % 2 == 0 ? hash : hash >> 32U) + choice / 2;
  return levels_[level].load(std::memory_order_relaxed)[place & (buckets(level) - 1)];
}

const HashIndex::Slot* HashIndex::search(const Bucket& bucket, std::uint64_t hash,
                                         bool& full) noexcept {
  for (const Slot& slot : bucket.slot) {
    const std::uint64_t there = slot.hash.load(std::memory_order_relaxed);
    if (there == hash) {
      return &slot;
    }
    full = there != 0;  // they fill up in order
  }
  return nullptr;
}

std::uint32_t HashIndex::find(std::uint64_t hash) const noexcept {
  const std::size_t oldest = oldest_.load(std::memory_order_acquire);
  for (std::size_t level = count_.load(std::memory_order_acquire); level-- > oldest;) {
    bool full[2] = {true, true};
    for (std::size_t choice = 0; choice < kChoices; ++choice) {
      if (!full[choice % 2]) {
        continue;
      }
      const Slot* const slot = search(bucket(level, hash, choice), hash, full[choice % 2]);
      if (slot != nullptr) {
        const std::uint64_t number = slot->number_plus_one.load(std::memory_order_acquire);
        return number == 0 ? kNone : static_cast<std::uint32_t>(number - 1);
      }
    }
  }
  return kNone;
}

// True also where another thread has put it there: its number is as good.
bool HashIndex::put(Slot& slot, std::uint64_t hash, std::uint32_t number) noexcept {
  std::uint64_t there = slot.hash.load(std::memory_order_relaxed);
  if (there == 0 && slot.hash.compare_exchange_strong(there, hash, std::memory_order_relaxed)) {
    slot.number_plus_one.store(std::uint64_t{number} + 1, std::memory_order_release);
    return true;
  }
  return there == hash;
}

bool HashIndex::add_to(std::size_t level, std::uint64_t hash, std::uint32_t number) noexcept {
  for (std::size_t first = 0; first < kChoices; first += 2) {
    Bucket& one = bucket(level, hash, first);
    Bucket& other = bucket(level, hash, first + 1);
    for (std::size_t i = 0; i < kBucket; ++i) {  // by turns: both fill up alike
      if (put(one.slot[i], hash, number) || put(other.slot[i], hash, number)) {
        return true;
      }
    }
  }
  return false;
}

void HashIndex::move_some(std::size_t newest) noexcept {
  const std::size_t oldest = oldest_.load(std::memory_order_acquire);
  if (oldest >= newest) {
    return;
  }
  const std::size_t which = moved_[oldest].fetch_add(1, std::memory_order_relaxed);
  if (which >= buckets(oldest)) {
    return;  // other threads move the last ones
  }
  Bucket* const table = levels_[oldest].load(std::memory_order_relaxed);
  for (const Slot& slot : table[which].slot) {
    const std::uint64_t hash = slot.hash.load(std::memory_order_relaxed);
    const std::uint64_t number = slot.number_plus_one.load(std::memory_order_acquire);
    if (hash != 0 && number != 0) {
      add_to(newest, hash, static_cast<std::uint32_t>(number - 1));
    }
  }
  if (which + 1 == buckets(oldest)) {
    oldest_.store(oldest + 1, std::memory_order_release);
    // Who still looks there finds nothing; the address range stays ours.
    sys::advise(table, bytes_of(oldest), MADV_DONTNEED);
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
  if (bytes_of(known) >= kLargePage) {  // it is touched all over: fewer faults, fewer TLB misses
    sys::advise(fresh, bytes_of(known), MADV_HUGEPAGE);
  }
  Bucket* none = nullptr;
  if (levels_[known].compare_exchange_strong(none, fresh, std::memory_order_release)) {
    bytes_.fetch_add(bytes_of(known), std::memory_order_relaxed);
  } else {
    sys::unmap(fresh, bytes_of(known));  // another thread was faster
  }
  std::size_t count = known;  // whoever comes first: that thread may have been stopped in between
  count_.compare_exchange_strong(count, known + 1, std::memory_order_release);
  return true;
}

bool HashIndex::add(std::uint64_t hash, std::uint32_t number) noexcept {
  for (std::size_t tries = 0; tries < kLevels; ++tries) {
    const std::size_t known = count_.load(std::memory_order_acquire);
    if (known > 0) {
      move_some(known - 1);
      if (add_to(known - 1, hash, number)) {
        return true;
      }
    }
    if (!grow(known)) {
      return false;
    }
  }
  return false;
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
}

}  // namespace tidemark::tracer
