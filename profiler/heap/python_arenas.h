// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/result.h"
#include "profiler/heap/memory_queries.h"
#include "profiler/heap/python_runtime.h"
#include "profiler/inject/remote_modules.h"

namespace tidemark::heap {

// An arena of Python's allocator of small objects (up to 512 bytes).
struct PythonArena {
  inject::AddressRange range;
  std::uint64_t used_bytes = 0;  // of blocks that are in use
};

// Those of the main interpreter of CPython 3.9 to 3.15, by address. The table of arenas is a
// variable of the program or library that has the interpreter; it is told by what it leads to: each
// arena begins with a pool that bears the number of the arena. Empty: Python is told to allocate
// otherwise (PYTHONMALLOC), or is free-threaded.
std::vector<PythonArena> find_python_arenas(const std::vector<inject::Mapping>& mappings,
                                            const PythonRuntime& runtime,
                                            const MemoryQueries& queries);

}  // namespace tidemark::heap
