// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

inline constexpr std::size_t kMaxFrames = 128;

// Of the function that called the hook, as they are when the hook returns.
struct Registers {
  std::uint64_t ip = 0;
  std::uint64_t sp = 0;
  std::uint64_t bp = 0;
};

// Call it in the hook itself, which must have a frame pointer (-fno-omit-frame-pointer).
[[gnu::always_inline]] inline Registers capture_registers() noexcept {
  const auto* const frame = static_cast<const std::uint64_t*>(__builtin_frame_address(0));
#if defined(__x86_64__)
  return {frame[1], reinterpret_cast<std::uint64_t>(frame + 2), frame[0]};
#else
  return {reinterpret_cast<std::uint64_t>(__builtin_return_address(0)),
          reinterpret_cast<std::uint64_t>(frame), 0};
#endif
}

// The frames of a walk. The outermost frame is at kMaxFrames - 1, so that outer frames which are
// the same in the next trace need not be moved.
struct FrameStates {
  std::uint64_t pc[kMaxFrames] = {};
  std::uint64_t hash[kMaxFrames] = {};
  std::uint64_t sp[kMaxFrames] = {};
  std::uint64_t bp[kMaxFrames] = {};
  std::uint16_t bp_from[kMaxFrames] = {};  // bp was loaded from so many words below sp, or:
};
inline constexpr std::uint16_t kBpKept = 0;            // the step into this frame loaded no bp
inline constexpr std::uint16_t kCannotCheck = 0xffff;  // the step must be made again

// The last trace of a scratch slot, and what the next walk can reuse of it. All zero is a valid
// slot without a trace. 4.5 KiB.
struct StackTrace {
  StackTrace() = default;
  StackTrace(const StackTrace&) = delete;  // pc and hash point into it
  StackTrace& operator=(const StackTrace&) = delete;

  std::uint32_t depth = 0;
  bool truncated = false;  // deeper than kMaxFrames; the outermost frames are missing
  // `depth` elements each, innermost first. pc[0] is the ip of the caller of malloc, the others are
  // return addresses. hash[i] identifies the frames i..depth-1 and is never 0.
  const std::uint64_t* pc = nullptr;
  const std::uint64_t* hash = nullptr;

  bool is_plain = false;            // no step went over the frame of a signal
  bool has_stack_pointers = false;  // frames.sp is set: a frame lies from its own to the next one

  // For the next walk.
  bool reusable = false;
  bool end_is_final = false;  // by its unwind rule the last frame is the outermost
  std::uint32_t generation = 0;
  FrameStates frames;
};

inline constexpr std::uint64_t kHashOfNoFrames = 0x6a09e667f3bcc909ULL;

// A polynomial of the mixed frames: only two additions depend on the hash of the outer frames. 5
// has the longest period modulo 2^64, so that no two positions of a stack have the same factor. The
// top bit keeps a hash from being 0.
constexpr std::uint64_t hash_with_frame(std::uint64_t outer, std::uint64_t pc) noexcept {
  const std::uint64_t product = pc * 0x9e3779b97f4a7c15ULL;
  return (outer * 5 + (product ^ (product >> 32))) | (std::uint64_t{1} << 63);
}

// Makes the frames from `first` to the outermost the trace.
inline void set_first_frame(StackTrace& trace, std::size_t first) noexcept {
  trace.depth = static_cast<std::uint32_t>(kMaxFrames - first);
  trace.pc = trace.frames.pc + first;
  trace.hash = trace.frames.hash + first;
}

// Fills the trace with frames from elsewhere. More than kMaxFrames: truncated.
inline void assign_frames(StackTrace& trace, const std::uint64_t* pcs, std::size_t count) noexcept {
  trace.truncated = count > kMaxFrames;
  trace.is_plain = false;
  trace.has_stack_pointers = false;
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
  set_first_frame(trace, first);
}

}  // namespace tidemark::tracer
