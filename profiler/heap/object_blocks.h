// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/heap/memory_image.h"
#include "profiler/heap/process_objects.h"
#include "profiler/heap/python_types.h"

namespace tidemark::heap {

// Appends where the blocks of memory begin that are an object's own: itself, with what lies before
// it, and its elements where they are apart from it.
void add_blocks(MemoryImage& image, ProcessObjects& objects, std::uint64_t address,
                PythonTypes::Index type, std::vector<std::uint64_t>& blocks);

}  // namespace tidemark::heap
