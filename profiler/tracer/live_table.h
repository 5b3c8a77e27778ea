// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/tracer/trace_store.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

enum class Inserted {
  kNew,
  kReplaced,  // an entry for this address was there: the release of that block was not seen
  kNoRoom,
};

// The blocks that live, by address. Lock-free; safe in signal handlers. When a level is mostly full
// a larger one comes beside it; nothing ever moves, so no thread waits for another.
//
// A level is set-associative: a block may lie in any slot of two buckets. Removing empties a slot
// and leaves no mark behind, so the table does not wear out however many blocks come and go.
class LiveTable {
 public:
  constexpr LiveTable() noexcept = default;  // to be bound before use
  constexpr explicit LiveTable(TraceStore& store) noexcept : store_(&store) {}
  void bind(TraceStore& store) noexcept { store_ = &store; }

  // `replaced` is set where the answer says so.
  Inserted insert(std::uint64_t address, const wire::LiveRecord& record,
                  wire::LiveRecord& replaced) noexcept;
  // A block is about to be inserted or removed: fetches where it is likely to lie.
  void prefetch(std::uint64_t address) const noexcept;
  // Of all blocks that are listed; one that comes or goes meanwhile may be among them.
  template <typename Visit>
  void for_each_address(Visit visit) const noexcept {
    const std::size_t levels = store_->extents(wire::Table::kLive);
    for (std::size_t level = 0; level < levels; ++level) {
      const auto* const buckets = store_->extent<wire::LiveBucket>(wire::Table::kLive, level);
      for (std::uint64_t i = 0; i < first_items(wire::Table::kLive) << level; ++i) {
        for (const auto& slot : buckets[i].address) {
          const std::uint64_t address = slot.load(std::memory_order_acquire);
          if (address > wire::kBusySlot) {
            visit(address);
          }
        }
      }
    }
  }
  // Takes the block out. False: it is not listed.
  bool remove(std::uint64_t address, wire::LiveRecord& record) noexcept;

 private:
  Inserted insert_into(std::size_t level, std::uint64_t address, const wire::LiveRecord& record,
                       wire::LiveRecord& replaced) noexcept;
  bool is_mostly_full(std::size_t level, std::uint64_t seed) noexcept;
  wire::LiveBucket& bucket(std::size_t level, std::uint64_t address, bool second) noexcept;

  TraceStore* store_ = nullptr;
};

}  // namespace tidemark::tracer
