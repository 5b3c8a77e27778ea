// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/tracer/trace_store.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// Who hears how much of a site's mappings is gone.
using ReleasedRange = void (*)(void* context, std::uint32_t site, std::uint64_t bytes, bool whole);

// The mappings that live, with what is left of those that were unmapped in part. One thread at a
// time, for a bounded time: mappings are rare. A thread that does not get its turn is told so.
class RangeTable {
 public:
  constexpr explicit RangeTable(TraceStore& store) noexcept : store_(store) {}

  // What lay there before (MAP_FIXED) is released first. False: no room, or no turn.
  bool insert(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site, std::uint32_t epoch,
              ReleasedRange released, void* context) noexcept;
  // Unmapped. False: no turn.
  bool release(std::uint64_t begin, std::uint64_t bytes, ReleasedRange released,
               void* context) noexcept;
  // The mapping that begins here. False: none, or no turn.
  bool find(std::uint64_t begin, wire::MapRange& range) noexcept;

  void clear() noexcept { busy_.store(false, std::memory_order_relaxed); }  // in a forked child

 private:
  bool lock() noexcept;
  void unlock() noexcept { busy_.store(false, std::memory_order_release); }
  wire::MapRange& at(std::uint64_t index) noexcept {
    return *store_.item<wire::MapRange>(wire::Table::kRanges, index);
  }
  std::uint64_t used() noexcept;
  bool put(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site,
           std::uint32_t epoch) noexcept;
  void cut_out(std::uint64_t begin, std::uint64_t end, ReleasedRange released,
               void* context) noexcept;

  static constexpr std::uint64_t kMost = 16384;

  TraceStore& store_;
  std::atomic<bool> busy_ = false;
};

}  // namespace tidemark::tracer
