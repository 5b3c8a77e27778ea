// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "common/result.h"
#include "profiler/heap/object_graph.h"

namespace tidemark::heap {

struct SnapshotLimits {
  // Of memory, for the texts: names, and the beginnings of texts of the job. When there are more,
  // the rest is "...".
  std::size_t most_text_bytes = std::size_t{64} << 20U;
  // Asked now and then; true: give up.
  std::function<bool()> is_cancelled = [] { return false; };
};

// Writes all objects of a look as V8 writes those of a page, for the memory panel of Chrome
// DevTools. An object has the same id at each look. Beside the texts it takes up to 10 bytes of
// memory per object. The error: the file could not be written, or it was cancelled.
Status write_heap_snapshot(const ObjectGraph& graph, int fd, const SnapshotLimits& limits);

}  // namespace tidemark::heap
