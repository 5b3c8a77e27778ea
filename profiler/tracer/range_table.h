// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// What was taken out of the table: a mapping, or a part of one.
struct RangePiece {
  std::uint64_t begin;
  std::uint64_t bytes;
  std::uint32_t site;
  std::uint32_t epoch;
  std::uint32_t mapping;  // what put_back() needs; see RangeTable
  bool last;              // no other part of that mapping is left
};

// Who hears what is gone.
using OnReleased = void (*)(void* context, const RangePiece& piece);

// The mappings that live, with what is left of those that were unmapped in part. One thread at a
// time, for a bounded time: mappings are rare. A thread that does not get its turn is told so.
class RangeTable {
 public:
  constexpr RangeTable() noexcept = default;  // to be bound before use
  constexpr explicit RangeTable(TraceStore& store) noexcept : store_(&store) {}
  void bind(TraceStore& store) noexcept { store_ = &store; }

  // What lay there before (MAP_FIXED) is released first. False: no room, or no turn.
  bool insert(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site, std::uint32_t epoch,
              OnReleased released, void* context) noexcept;
  // Unmapped, or about to be moved. False: no turn.
  bool release(std::uint64_t begin, std::uint64_t bytes, OnReleased released,
               void* context) noexcept;
  // Undoes release() for what it told of: the mapping stays where it was. False: no room, no turn.
  bool put_back(const RangePiece& piece) noexcept;
  // The mapping that holds this address. False: none, or no turn.
  bool find(std::uint64_t address, RangePiece& range) noexcept;

  void clear() noexcept;  // in a forked child

 private:
  wire::MapRange& at(std::uint64_t index) noexcept {
    return *store_->item<wire::MapRange>(wire::Table::kRanges, index);
  }
  std::uint32_t first_from(std::uint64_t address) noexcept;
  bool insert_piece(const RangePiece& piece) noexcept;
  void erase(std::uint32_t place) noexcept;
  bool is_last_of(std::uint32_t place) noexcept;
  void cut(std::uint64_t begin, std::uint64_t end, OnReleased released, void* context) noexcept;

  static constexpr std::uint32_t kMaxRanges = 16384;

  TraceStore* store_ = nullptr;
  BoundedLock lock_;
  // Numbers of slots: those of the ranges in the order of their addresses, then those that are
  // free.
  std::uint32_t order_[kMaxRanges] = {};
  // By slot: parts of a mapping that was cut have the same number; 0: it is whole.
  std::uint32_t mapping_[kMaxRanges] = {};
  std::uint32_t mappings_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t slots_ = 0;
};

}  // namespace tidemark::tracer
