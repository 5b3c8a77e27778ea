// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "common/result.h"
#include "profiler/heap/object_graph.h"

namespace tidemark::heap {

// Writes all objects of a look as V8 writes those of a page, for the memory panel of Chrome
// DevTools. It takes up to 64 MiB of memory for texts and 16 bytes per object. An object has the
// same id at each look. The error: the file could not be written, or `is_cancelled` was true.
Status write_heap_snapshot(const ObjectGraph& graph, int fd,
                           const std::function<bool()>& is_cancelled);

}  // namespace tidemark::heap
