// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/range_table.h"

#include "profiler/tracer/sys.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::MapRange;
using wire::Table;

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

// The place in `order_` of the first range that begins at `address` or later.
std::uint32_t RangeTable::first_from(std::uint64_t address) noexcept {
  std::uint32_t low = 0;
  std::uint32_t high = count_;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (at(order_[middle]).begin.load(kRelaxed) < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Gets it if need be. Called with the lock held.
bool RangeTable::has_memory() noexcept {
  if (order_ == nullptr) {
    order_ = static_cast<std::uint32_t*>(sys::map_private(2 * sizeof(order_[0]) * kMaxRanges));
    mapping_ = order_ == nullptr ? nullptr : order_ + kMaxRanges;
  }
  return order_ != nullptr;
}

void RangeTable::grow_ahead() noexcept {
  const BoundedLockGuard guard(lock_, BoundedLockGuard::Wait::kBounded);
  if (guard) {
    has_memory();
  }
}

bool RangeTable::insert_piece(const RangePiece& piece) noexcept {
  if (!has_memory()) {
    return false;
  }
  if (count_ == slots_) {
    std::uint64_t fresh = 0;
    if (slots_ == kMaxRanges || store_->used(Table::kRanges) >= kMaxRanges ||
        !store_->take(Table::kRanges, 1, fresh) || fresh >= kMaxRanges) {
      return false;
    }
    order_[slots_++] = static_cast<std::uint32_t>(fresh);
  }
  const std::uint32_t slot = order_[count_];
  const std::uint32_t place = first_from(piece.begin);
  __builtin_memmove(order_ + place + 1, order_ + place, (count_ - place) * sizeof(order_[0]));
  order_[place] = slot;
  mapping_[slot] = piece.mapping;
  ++count_;
  MapRange& range = at(slot);
  range.begin.store(piece.begin, kRelaxed);
  range.site = piece.site;
  range.epoch = piece.epoch;
  range.bytes.store(piece.bytes, std::memory_order_release);
  return true;
}

void RangeTable::erase(std::uint32_t place) noexcept {
  const std::uint32_t slot = order_[place];
  at(slot).bytes.store(0, kRelaxed);
  --count_;
  __builtin_memmove(order_ + place, order_ + place + 1, (count_ - place) * sizeof(order_[0]));
  order_[count_] = slot;  // free now
}

// Whether no other part of this mapping is in the table.
bool RangeTable::is_last_of(std::uint32_t place) noexcept {
  const std::uint32_t mapping = mapping_[order_[place]];
  for (std::uint32_t i = 0; mapping != 0 && i < count_; ++i) {
    if (i != place && mapping_[order_[i]] == mapping) {
      return false;
    }
  }
  return true;
}

void RangeTable::cut(std::uint64_t begin, std::uint64_t end, OnReleased released,
                     void* context) noexcept {
  std::uint32_t place = first_from(begin);
  place -= place > 0 ? 1 : 0;  // the previous range may overlap
  while (place < count_ && at(order_[place]).begin.load(kRelaxed) < end) {
    MapRange& range = at(order_[place]);
    std::uint32_t& mapping = mapping_[order_[place]];
    const std::uint64_t from = range.begin.load(kRelaxed);
    const std::uint64_t to = from + range.bytes.load(kRelaxed);
    const std::uint64_t first = begin > from ? begin : from;
    const std::uint64_t last = end < to ? end : to;
    if (first >= last) {
      ++place;
      continue;
    }
    const bool whole = first == from && last == to;
    if (!whole && mapping == 0) {
      mapping = ++mappings_ != 0 ? mappings_ : ++mappings_;
    }
    const RangePiece piece = {first,       last - first, range.site,
                              range.epoch, mapping,      whole && is_last_of(place)};
    released(context, piece);
    if (whole) {
      erase(place);
      continue;
    }
    if (first > from) {  // the front stays; what is left behind the hole becomes another range
      range.bytes.store(first - from, kRelaxed);
      const RangePiece rest = {last, to - last, piece.site, piece.epoch, mapping, false};
      if (last < to && !insert_piece(rest)) {
        released(context, rest);
        store_->header()->losses.ranges_full.fetch_add(1, kRelaxed);
      }
    } else {
      range.begin.store(last, kRelaxed);
      range.bytes.store(to - last, kRelaxed);
    }
    ++place;
  }
}

bool RangeTable::insert(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site,
                        std::uint32_t epoch, OnReleased released, void* context) noexcept {
  const BoundedLockGuard guard(lock_, BoundedLockGuard::Wait::kBounded);
  if (!guard) {
    return false;
  }
  cut(begin, begin + bytes, released, context);
  return insert_piece({begin, bytes, site, epoch, 0, false});
}

bool RangeTable::release(std::uint64_t begin, std::uint64_t bytes, OnReleased released,
                         void* context) noexcept {
  const BoundedLockGuard guard(lock_, BoundedLockGuard::Wait::kBounded);
  if (!guard) {
    return false;
  }
  cut(begin, begin + bytes, released, context);
  return true;
}

bool RangeTable::put_back(const RangePiece& piece) noexcept {
  const BoundedLockGuard guard(lock_, BoundedLockGuard::Wait::kBounded);
  return guard && insert_piece(piece);
}

bool RangeTable::find(std::uint64_t address, RangePiece& range) noexcept {
  const BoundedLockGuard guard(lock_, BoundedLockGuard::Wait::kBounded);
  if (!guard) {
    return false;
  }
  const std::uint32_t after = first_from(address + 1);
  if (after == 0) {
    return false;
  }
  const MapRange& here = at(order_[after - 1]);
  const std::uint64_t begin = here.begin.load(kRelaxed);
  const std::uint64_t bytes = here.bytes.load(kRelaxed);
  if (address - begin >= bytes) {
    return false;
  }
  range = {begin, bytes, here.site, here.epoch, mapping_[order_[after - 1]], false};
  return true;
}

void RangeTable::clear() noexcept {
  lock_.clear();
  count_ = 0;
  slots_ = 0;
  mappings_ = 0;
}

}  // namespace tidemark::tracer
