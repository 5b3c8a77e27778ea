// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/site_records.h"
#include "profiler/reader/memory_areas.h"
#include "profiler/reader/residency.h"
#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

// Blocks from this size on may lie in pages that were never touched.
inline constexpr std::uint64_t kLargeBlockBytes = 64ULL << 10U;

struct AccountInput {
  std::span<const MemoryArea> areas;
  const LiveScan* scan = nullptr;  // all large blocks, and some of the others
  std::function<wire::SiteKind(std::uint32_t site)> kind_of;
  // How much of some memory is there; nullopt: nobody knows.
  std::function<std::optional<Residency>(std::span<const MemoryRange>)> residency_of;
  std::uint64_t sample_every_bytes = 0;    // 0: exact
  std::uint64_t tracer_private_bytes = 0;  // memory of the tracer beside its file
};

// Tells, from outside, what mallinfo2() would tell inside (there it takes the locks of the
// allocator): how much of what is resident the live blocks explain, how much the allocator keeps
// beside them, and how much never came through a hook. `key` and `t_s` are left to the caller.
MemoryAccount make_account(const AccountInput& input);

}  // namespace tidemark::reader
