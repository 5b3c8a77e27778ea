// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/site_records.h"
#include "profiler/reader/residency.h"
#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

// What a mapping of a process is, as far as its memory concerns us.
enum class AreaKind {
  kHeap,       // [heap]: of the allocator, whatever the hooks saw
  kAnonymous,  // no file: arenas of the allocator, large blocks, stacks of threads, mmap
  kStack,      // of the main thread
  kTrace,      // the tracer's own file
  kOther,      // files and shared memory; pages of them that were written are copies
};

struct MemoryArea {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  AreaKind kind = AreaKind::kOther;
  std::uint64_t resident_bytes = 0;
  std::uint64_t anonymous_bytes = 0;  // of the resident ones, and what of it is swapped out
};

// By the name of the mapping.
AreaKind area_kind(std::string_view name);

// From the text of /proc/PID/smaps; mappings that cannot be understood are left out. In the order
// of addresses.
std::vector<MemoryArea> parse_memory_areas(std::string_view smaps);

// Reads them; costs the kernel about 13 ms per resident GiB. nullopt: no permission, or it is gone.
std::optional<std::vector<MemoryArea>> memory_areas_of(pid_t pid,
                                                       const std::string& proc_root = "/proc");

// Blocks from this size on may lie in pages that were never touched.
inline constexpr std::uint64_t kLargeBlockBytes = 64ULL << 10U;

struct AccountInput {
  std::span<const MemoryArea> areas;
  const LiveScan* scan = nullptr;  // all large blocks, and some of the others
  std::function<AllocationKind(std::uint32_t site)> kind_of;
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
