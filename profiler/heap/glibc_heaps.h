// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profiler/heap/memory_queries.h"
#include "profiler/inject/remote_modules.h"

namespace tidemark::heap {

// A stretch of memory that glibc's malloc cuts blocks from.
struct MallocHeap {
  inject::AddressRange range;    // with what it may yet grow into
  bool is_main = false;          // [heap]
  std::uint64_t free_bytes = 0;  // in RAM, freed or never used
};

struct MallocHeaps {
  std::vector<MallocHeap> heaps;  // by address
  bool knows_free = false;        // the lists of free chunks were found
  // Not all free chunks were seen: there are too many, or they changed while they were read.
  bool is_partial = false;
};

// The heaps of glibc (2.26 and later) by what it writes into them: [heap], and those of other
// threads, each of which begins at a multiple of 64 MiB and says so. Free memory is what the lists
// of free chunks have; what single threads keep for themselves (a few small blocks) is not in them.
// `is_over`: asked now and then; true: give what is known.
MallocHeaps find_malloc_heaps(const std::vector<inject::Mapping>& mappings,
                              const MemoryQueries& queries, const std::function<bool()>& is_over);

// Without the right to read the memory: by the shape of the mappings alone.
MallocHeaps guess_malloc_heaps(const std::vector<inject::Mapping>& mappings);

}  // namespace tidemark::heap
