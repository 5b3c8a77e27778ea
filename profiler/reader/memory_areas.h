// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// From the text of /proc/PID/smaps; mappings that cannot be understood are left out. In the order
// of addresses.
std::vector<MemoryArea> parse_memory_areas(std::string_view smaps);

// Reads them; costs the kernel about 13 ms per resident GiB. nullopt: no permission, or it is gone.
std::optional<std::vector<MemoryArea>> memory_areas_of(pid_t pid,
                                                       const std::string& proc_root = "/proc");

}  // namespace tidemark::reader
