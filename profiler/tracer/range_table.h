// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// A mapping in the table, or a part of one that was taken out.
struct RangePiece {
  std::uint64_t begin;
  std::uint64_t bytes;
  std::uint32_t site;
  std::uint32_t epoch;
  std::uint32_t mapping;  // common to all parts of one mapping; 0: it is whole
  bool last;              // no other part of that mapping is left
};

// Called for each mapping, or part of one, that is no longer in the table.
using OnReleased = void (*)(void* context, const RangePiece& piece);

// The live mappings, with what is left of those that were unmapped in part. Under a bounded lock,
// because mappings are rare: a thread that does not get the lock in time gets `false`.
class RangeTable {
 public:
  constexpr RangeTable() noexcept = default;  // to be bound before use
  constexpr explicit RangeTable(TraceStore& store) noexcept : store_(&store) {}
  void bind(TraceStore& store) noexcept { store_ = &store; }

  // Whatever was there before (MAP_FIXED) is released first. False: no room, or no lock.
  bool insert(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site, std::uint32_t epoch,
              OnReleased released, void* context) noexcept;
  // Takes the range out: unmapped, or about to be moved. False: no lock.
  bool release(std::uint64_t begin, std::uint64_t bytes, OnReleased released,
               void* context) noexcept;
  // Undoes release() for one piece: the mapping stays where it was. False: no room, or no lock.
  bool put_back(const RangePiece& piece) noexcept;
  // The mapping that contains this address. False: none, or no lock.
  bool find(std::uint64_t address, RangePiece& range) noexcept;

  // Makes room for a time when there is no memory.
  void grow_ahead() noexcept;
  void clear() noexcept;  // in a forked child

 private:
  wire::MapRange& at(std::uint64_t index) noexcept {
    return *store_->item<wire::MapRange>(wire::Table::kRanges, index);
  }
  std::uint32_t first_from(std::uint64_t address) noexcept;
  bool has_memory() noexcept;
  bool insert_piece(const RangePiece& piece) noexcept;
  void erase(std::uint32_t place) noexcept;
  bool is_last_of(std::uint32_t place) noexcept;
  void cut(std::uint64_t begin, std::uint64_t end, OnReleased released, void* context) noexcept;

  static constexpr std::uint32_t kMaxRanges = 16384;

  TraceStore* store_ = nullptr;
  BoundedLock lock_;
  // Indexes of slots: first those in use, ordered by address, then the free ones. nullptr until the
  // first range is inserted; of kMaxRanges elements, as the next.
  std::uint32_t* order_ = nullptr;
  // By slot: see RangePiece::mapping.
  std::uint32_t* mapping_ = nullptr;
  std::uint32_t mappings_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t slots_ = 0;
};

}  // namespace tidemark::tracer
