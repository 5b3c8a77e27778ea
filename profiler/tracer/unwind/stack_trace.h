// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

inline constexpr std::size_t kMaxFrames = 128;

// Of the function that called the hook, at the instruction after that call.
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

// What a frame's state was when the walk came to it; the outermost frame is at kMaxFrames - 1, so
// that frames which stay the same from one trace to the next stay where they are.
struct FrameStates {
  std::uint64_t pc[kMaxFrames] = {};
  std::uint64_t hash[kMaxFrames] = {};
  std::uint64_t sp[kMaxFrames] = {};
  std::uint64_t bp[kMaxFrames] = {};
  std::uint16_t bp_from[kMaxFrames] = {};  // words below sp where bp was loaded from, or below
};
inline constexpr std::uint16_t kBpKept = 0;            // the step into this frame loaded no bp
inline constexpr std::uint16_t kCannotCheck = 0xffff;  // that step must be made anew

// A scratch slot of one thread: holds its last trace, and is reused for the next. All zero is a
// valid slot without a trace. 4.5 KiB.
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

  bool is_plain = false;  // no step went over the frame of a signal

  // For the next walk.
  bool reusable = false;
  bool end_is_final = false;  // the outermost frame said that it is the outermost
  std::uint32_t generation = 0;
  FrameStates frames;
};

inline constexpr std::uint64_t kHashOfNoFrames = 0x6a09e667f3bcc909ULL;

// A polynomial of the scrambled frames: what waits for the hash of the frames further out is two
// additions. 5 has the longest period modulo 2^64, so that no two places of a stack weigh the same.
// The top bit keeps a hash from being 0.
constexpr std::uint64_t hash_with_frame(std::uint64_t outer, std::uint64_t pc) noexcept {
  const std::uint64_t product = pc * 0x9e3779b97f4a7c15ULL;
  return (outer * 5 + (product ^ (product >> 32))) | (std::uint64_t{1} << 63);
}

// Makes the frames from `first` to the outermost the trace.
inline void show_frames_from(StackTrace& trace, std::size_t first) noexcept {
  trace.depth = static_cast<std::uint32_t>(kMaxFrames - first);
  trace.pc = trace.frames.pc + first;
  trace.hash = trace.frames.hash + first;
}

// Fills the trace with frames from elsewhere. More than kMaxFrames: truncated.
inline void assign_frames(StackTrace& trace, const std::uint64_t* pcs, std::size_t count) noexcept {
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
