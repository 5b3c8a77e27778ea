// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/live_table.h"

#include "profiler/tracer/bounded_lock.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::kSlotsPerBucket;
using wire::LiveBucket;
using wire::LiveRecord;

// One bit per slot. Collected without branches, which could not be predicted.
struct BucketView {
  unsigned empty = 0;
  unsigned same = 0;  // slots with the address that is looked for

  int room() const noexcept { return __builtin_ctz(empty); }  // if there is one
  unsigned used() const noexcept {                            // the baseline x86-64 has no popcnt
    unsigned count = empty - ((empty >> 1U) & 0x55U);
    count = (count & 0x33U) + ((count >> 2U) & 0x33U);
    return static_cast<unsigned>(kSlotsPerBucket) - ((count + (count >> 4U)) & 0xfU);
  }
};

[[gnu::always_inline]] inline unsigned slots_of(const LiveBucket& bucket,
                                                std::uint64_t address) noexcept {
  unsigned same = 0;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kSlotsPerBucket; ++i) {
    same |= (bucket.address[i].load(std::memory_order_relaxed) == address ? 1U : 0U) << i;
  }
  return same;
}

[[gnu::always_inline]] inline BucketView view(const LiveBucket& bucket,
                                              std::uint64_t address) noexcept {
  return {slots_of(bucket, wire::kEmptySlot), slots_of(bucket, address)};
}

bool exchange(LiveBucket& bucket, std::size_t slot, std::uint64_t from, std::uint64_t to) noexcept {
  return bucket.address[slot].compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

void fill(LiveBucket& bucket, std::size_t slot, std::uint64_t address,
          const LiveRecord& record) noexcept {
  bucket.record[slot] = record;
  bucket.address[slot].store(address, std::memory_order_release);
}

}  // namespace

LiveBucket& LiveTable::bucket(std::size_t level, std::uint64_t address, bool second) noexcept {
  const std::uint64_t buckets = first_items(wire::Table::kLive) << level;
  return store_->extent<LiveBucket>(wire::Table::kLive,
                                    level)[wire::bucket_of(address, buckets, second)];
}

Inserted LiveTable::insert_into(std::size_t level, std::uint64_t address, const LiveRecord& record,
                                LiveRecord& replaced) noexcept {
  constexpr int kTries = 8;  // another thread may take the slot first
  for (int i = 0; i < kTries; ++i) {
    LiveBucket* chosen = &bucket(level, address, false);
    BucketView seen = view(*chosen, address);
    // The second bucket only if the first is nearly full: most blocks then touch one bucket only.
    if (seen.same == 0 && seen.used() + 2 >= kSlotsPerBucket) {
      LiveBucket& other = bucket(level, address, true);
      const BucketView there = view(other, address);
      if (there.same != 0 || there.used() < seen.used()) {
        chosen = &other;
        seen = there;
      }
    }
    if (seen.same != 0) [[unlikely]] {
      const auto slot = static_cast<std::size_t>(__builtin_ctz(seen.same));
      replaced = chosen->record[slot];
      if (exchange(*chosen, slot, address, wire::kBusySlot)) {
        fill(*chosen, slot, address, record);
        return Inserted::kReplaced;
      }
      continue;
    }
    if (seen.empty == 0) {
      return Inserted::kNoRoom;
    }
    const auto slot = static_cast<std::size_t>(seen.room());
    if (exchange(*chosen, slot, wire::kEmptySlot, wire::kBusySlot)) {
      fill(*chosen, slot, address, record);
      return Inserted::kNew;
    }
  }
  return Inserted::kNoRoom;
}

// Estimated from some buckets.
bool LiveTable::is_mostly_full(std::size_t level, std::uint64_t seed) noexcept {
  constexpr std::uint64_t kProbes = 128;
  constexpr std::uint64_t kMaxUsed = kProbes * kSlotsPerBucket * 4 / 5;
  std::uint64_t used = 0;
  for (std::uint64_t i = 0; i < kProbes; ++i) {
    used += BucketView{slots_of(bucket(level, seed + i, true), wire::kEmptySlot)}.used();
  }
  return used > kMaxUsed;
}

// The newest and largest level first; the others hold older blocks. Levels are not filled to the
// last slot, because a block without room costs a search of all levels.
Inserted LiveTable::insert(std::uint64_t address, const LiveRecord& record,
                           LiveRecord& replaced) noexcept {
  BoundedWait wait;
  while (true) {
    const std::size_t levels = store_->extents(wire::Table::kLive);
    for (std::size_t level = levels; level-- > 0;) {
      const Inserted done = insert_into(level, address, record, replaced);
      if (done != Inserted::kNoRoom) {
        return done;
      }
      if (level + 1 == levels && wire::mix(address) >> 58U == 0 && is_mostly_full(level, address) &&
          (level == 0 || is_mostly_full(level - 1, address)) &&
          store_->make_room(wire::Table::kLive, items_in(wire::Table::kLive, levels))) {
        break;
      }
    }
    if (!store_->make_room(
            wire::Table::kLive,
            items_in(wire::Table::kLive, levels)) &&  // true also if another thread has extended it
        (store_->cannot_grow(wire::Table::kLive) || !wait.keep_waiting())) {
      return Inserted::kNoRoom;
    }
  }
}

bool LiveTable::remove(std::uint64_t address, LiveRecord& record) noexcept {
  for (std::size_t level = store_->extents(wire::Table::kLive); level-- > 0;) {
    for (const bool second : {false, true}) {
      LiveBucket& candidate = bucket(level, address, second);
      for (unsigned same = slots_of(candidate, address); same != 0; same &= same - 1) {
        const auto slot = static_cast<std::size_t>(__builtin_ctz(same));
        std::atomic_thread_fence(std::memory_order_acquire);
        record = candidate.record[slot];
        if (exchange(candidate, slot, address, wire::kEmptySlot)) {
          return true;
        }
      }
    }
  }
  return false;
}

void LiveTable::prefetch(std::uint64_t address) const noexcept {
  const std::size_t level = store_->extents(wire::Table::kLive) - 1;
  const std::uint64_t buckets = first_items(wire::Table::kLive) << level;
  const auto* const first = store_->extent<LiveBucket>(wire::Table::kLive, level) +
                            wire::bucket_of(address, buckets, false);
  __builtin_prefetch(first, 1);
  __builtin_prefetch(first->record, 1);
}

}  // namespace tidemark::tracer
