// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/live_table.h"

#include "profiler/tracer/sys.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::kSlotsPerBucket;
using wire::LiveBucket;
using wire::LiveRecord;

constexpr std::size_t kNone = kSlotsPerBucket;

struct BucketView {
  std::size_t room = kNone;  // an empty slot
  std::size_t same = kNone;  // the slot of the address that was asked for
  std::size_t used = 0;
};

BucketView view(const LiveBucket& bucket, std::uint64_t address) noexcept {
  BucketView found;
  for (std::size_t i = 0; i < kSlotsPerBucket; ++i) {
    const std::uint64_t there = bucket.address[i].load(std::memory_order_relaxed);
    if (there == wire::kEmptySlot) {
      found.room = found.room == kNone ? i : found.room;
      continue;
    }
    ++found.used;
    found.same = there == address ? i : found.same;
  }
  return found;
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

LiveBucket& LiveTable::bucket(std::size_t level, std::uint64_t mixed, bool second) noexcept {
  const std::uint64_t buckets = first_items(wire::Table::kLive) << level;
  return store_->extent<LiveBucket>(wire::Table::kLive,
                                    level)[wire::bucket_of(mixed, buckets, second)];
}

Inserted LiveTable::insert_into(std::size_t level, std::uint64_t address, std::uint64_t mixed,
                                const LiveRecord& record, LiveRecord& replaced) noexcept {
  constexpr int kTries = 8;  // a slot may be taken under our eyes
  for (int i = 0; i < kTries; ++i) {
    LiveBucket* chosen = &bucket(level, mixed, false);
    BucketView seen = view(*chosen, address);
    // The second choice only where the first is half full: most blocks then touch one bucket.
    if (seen.same == kNone && seen.used >= kSlotsPerBucket / 2) {
      LiveBucket& other = bucket(level, mixed, true);
      const BucketView there = view(other, address);
      if (there.same != kNone || there.used < seen.used) {
        chosen = &other;
        seen = there;
      }
    }
    if (seen.same != kNone) {
      replaced = chosen->record[seen.same];
      if (exchange(*chosen, seen.same, address, wire::kBusySlot)) {
        fill(*chosen, seen.same, address, record);
        return Inserted::kReplaced;
      }
      continue;
    }
    if (seen.room == kNone) {
      return Inserted::kNoRoom;
    }
    if (exchange(*chosen, seen.room, wire::kEmptySlot, wire::kBusySlot)) {
      fill(*chosen, seen.room, address, record);
      return Inserted::kNew;
    }
  }
  return Inserted::kNoRoom;
}

Inserted LiveTable::insert(std::uint64_t address, const LiveRecord& record,
                           LiveRecord& replaced) noexcept {
  constexpr int kTries = 1000;  // an extension by another thread takes some 100 us
  const std::uint64_t mixed = wire::mix(address);
  for (int i = 0; i < kTries; ++i) {
    const std::size_t levels = store_->extents(wire::Table::kLive);
    for (std::size_t level = levels; level-- > 0;) {  // the largest first
      const Inserted done = insert_into(level, address, mixed, record, replaced);
      if (done != Inserted::kNoRoom) {
        return done;
      }
    }
    if (!store_->extend(wire::Table::kLive, levels)) {
      if (!store_->extending()) {
        return Inserted::kNoRoom;
      }
      sys::call(SYS_sched_yield);
    }
  }
  return Inserted::kNoRoom;
}

bool LiveTable::remove(std::uint64_t address, LiveRecord& record) noexcept {
  const std::uint64_t mixed = wire::mix(address);
  for (std::size_t level = store_->extents(wire::Table::kLive); level-- > 0;) {
    for (const bool second : {false, true}) {
      LiveBucket& candidate = bucket(level, mixed, second);
      for (std::size_t i = 0; i < kSlotsPerBucket; ++i) {
        if (candidate.address[i].load(std::memory_order_acquire) != address) {
          continue;
        }
        record = candidate.record[i];
        if (exchange(candidate, i, address, wire::kEmptySlot)) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace tidemark::tracer
