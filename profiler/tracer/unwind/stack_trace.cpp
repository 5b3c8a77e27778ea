// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {
namespace {

constexpr std::uint64_t kNoFrames = 0x6a09e667f3bcc909ULL;  // the hash of an empty stack

std::uint64_t scramble(std::uint64_t pc) noexcept {
  const std::uint64_t product = pc * 0x9e3779b97f4a7c15ULL;
  return product ^ (product >> 32);
}

// A polynomial of the scrambled frames: what waits for the frames further out is two additions. 5
// has the longest period modulo 2^64, so that no two places of a stack weigh the same. The top bit
// keeps a hash from being 0.
std::uint64_t mix(std::uint64_t outer, std::uint64_t pc) noexcept {
  return (outer * 5 + scramble(pc)) | (std::uint64_t{1} << 63);
}

}  // namespace

void finish_trace(StackTrace& trace, std::size_t depth, std::size_t hashed_from) noexcept {
  FrameStates& frames = trace.frames;
  const std::size_t first = kMaxFrames - depth;
  std::uint64_t hash = hashed_from < kMaxFrames ? frames.hash[hashed_from] : kNoFrames;
  for (std::size_t i = hashed_from; i > first; --i) {
    hash = mix(hash, frames.pc[i - 1]);
    frames.hash[i - 1] = hash;
  }
  trace.depth = static_cast<std::uint32_t>(depth);
  trace.pc = frames.pc + first;
  trace.hash = frames.hash + first;
}

void assign_frames(StackTrace& trace, const std::uint64_t* pcs, std::size_t count) noexcept {
  trace.truncated = count > kMaxFrames;
  trace.reusable = false;
  const std::size_t depth = trace.truncated ? kMaxFrames : count;
  for (std::size_t i = 0; i < depth; ++i) {
    trace.frames.pc[kMaxFrames - depth + i] = pcs[i];
  }
  finish_trace(trace, depth, kMaxFrames);
}

}  // namespace tidemark::tracer
