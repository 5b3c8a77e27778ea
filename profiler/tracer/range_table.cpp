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

bool RangeTable::lock() noexcept {
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    if (!busy_.exchange(true, std::memory_order_acquire)) {
      return true;
    }
    sys::call(SYS_sched_yield);
  }
  return false;
}

std::uint64_t RangeTable::used() noexcept {
  const std::uint64_t count =
      store_.header()->table[static_cast<std::size_t>(Table::kRanges)].used.load(kRelaxed);
  return count < kMost ? count : kMost;
}

bool RangeTable::put(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site,
                     std::uint32_t epoch) noexcept {
  std::uint64_t index = 0;
  const std::uint64_t count = used();
  while (index < count && at(index).bytes.load(kRelaxed) != 0) {
    ++index;
  }
  if (index == count && (count >= kMost || !store_.take(Table::kRanges, 1, index))) {
    return false;
  }
  MapRange& range = at(index);
  range.begin.store(begin, kRelaxed);
  range.site = site;
  range.epoch = epoch;
  range.bytes.store(bytes, std::memory_order_release);
  return true;
}

void RangeTable::cut_out(std::uint64_t begin, std::uint64_t end, ReleasedRange released,
                         void* context) noexcept {
  const std::uint64_t count = used();
  for (std::uint64_t i = 0; i < count; ++i) {
    MapRange& range = at(i);
    const std::uint64_t from = range.begin.load(kRelaxed);
    const std::uint64_t to = from + range.bytes.load(kRelaxed);
    if (from == to || to <= begin || from >= end) {
      continue;
    }
    const std::uint64_t first = begin > from ? begin : from;
    const std::uint64_t last = end < to ? end : to;
    const bool whole = first == from && last == to;
    released(context, range.site, last - first, whole);
    if (first > from) {  // the front stays; a rest behind the hole becomes a range of its own
      range.bytes.store(first - from, kRelaxed);
      if (last < to && !put(last, to - last, range.site, range.epoch)) {
        released(context, range.site, to - last, false);
        store_.header()->losses.ranges_full.fetch_add(1, kRelaxed);
      }
    } else {
      range.begin.store(last, kRelaxed);
      range.bytes.store(to - last, kRelaxed);
    }
  }
}

bool RangeTable::insert(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site,
                        std::uint32_t epoch, ReleasedRange released, void* context) noexcept {
  if (!lock()) {
    return false;
  }
  cut_out(begin, begin + bytes, released, context);
  const bool done = put(begin, bytes, site, epoch);
  unlock();
  return done;
}

bool RangeTable::release(std::uint64_t begin, std::uint64_t bytes, ReleasedRange released,
                         void* context) noexcept {
  if (!lock()) {
    return false;
  }
  cut_out(begin, begin + bytes, released, context);
  unlock();
  return true;
}

bool RangeTable::find(std::uint64_t begin, MapRange& range) noexcept {
  if (!lock()) {
    return false;
  }
  bool found = false;
  const std::uint64_t count = used();
  for (std::uint64_t i = 0; i < count && !found; ++i) {
    const MapRange& here = at(i);
    if (here.bytes.load(kRelaxed) != 0 && here.begin.load(kRelaxed) == begin) {
      range.begin.store(begin, kRelaxed);
      range.bytes.store(here.bytes.load(kRelaxed), kRelaxed);
      range.site = here.site;
      range.epoch = here.epoch;
      found = true;
    }
  }
  unlock();
  return found;
}

}  // namespace tidemark::tracer
