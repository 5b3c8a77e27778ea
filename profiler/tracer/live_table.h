// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/tracer/trace_store.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

enum class Inserted {
  kNew,
  kReplaced,  // there was an entry for this address: the free of that block was not seen
  kNoRoom,
};

// The live blocks, by address. Lock-free; safe in signal handlers. When a level is mostly full a
// larger one is added; entries never move, so no thread waits for another.
//
// A level is set-associative: a block may be in any slot of two buckets. remove() leaves no
// tombstone, so the table stays as fast however many blocks are allocated and freed.
class LiveTable {
 public:
  constexpr LiveTable() noexcept = default;  // to be bound before use
  constexpr explicit LiveTable(TraceStore& store) noexcept : store_(&store) {}
  void bind(TraceStore& store) noexcept { store_ = &store; }

  // `replaced` is set if the result is kReplaced.
  Inserted insert(std::uint64_t address, const wire::LiveRecord& record,
                  wire::LiveRecord& replaced) noexcept;
  // Before insert(): fetches the cache lines that it will most likely use.
  void prefetch(std::uint64_t address) const noexcept;
  // A block that is inserted or removed meanwhile may or may not be visited.
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
  // False: it is not in the table.
  bool remove(std::uint64_t address, wire::LiveRecord& record) noexcept;

 private:
  Inserted insert_into(std::size_t level, std::uint64_t address, const wire::LiveRecord& record,
                       wire::LiveRecord& replaced) noexcept;
  bool is_mostly_full(std::size_t level, std::uint64_t seed) noexcept;
  wire::LiveBucket& bucket(std::size_t level, std::uint64_t address, bool second) noexcept;

  TraceStore* store_ = nullptr;
};

}  // namespace tidemark::tracer
