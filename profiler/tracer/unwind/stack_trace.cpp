// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

void assign_frames(StackTrace& trace, const std::uint64_t* pcs, std::size_t count) noexcept {
  trace.truncated = count > kMaxFrames;
  trace.is_plain = false;
  trace.reusable = false;
  trace.end_is_final = false;
  const std::size_t depth = trace.truncated ? kMaxFrames : count;
  const std::size_t first = kMaxFrames - depth;
  std::uint64_t hash = kHashOfNoFrames;
  for (std::size_t i = depth; i > 0; --i) {
    hash = hash_with_frame(hash, pcs[i - 1]);
    trace.frames.pc[first + i - 1] = pcs[i - 1];
    trace.frames.hash[first + i - 1] = hash;
  }
  show_frames_from(trace, first);
}

}  // namespace tidemark::tracer
