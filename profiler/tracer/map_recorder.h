// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/tracer/range_table.h"
#include "profiler/tracer/site_recorder.h"
#include "profiler/tracer/unwind/stack_trace.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// Records the mappings that the program makes, cuts, moves and unmaps. As with Recorder: any thread
// in any state, errno is kept, what cannot be recorded is counted as lost.
class MapRecorder {
 public:
  void bind(SiteRecorder& sites) noexcept;
  // Makes room for a time when there is no memory.
  void grow_ahead() noexcept { ranges_.grow_ahead(); }
  void clear() noexcept { ranges_.clear(); }  // in a forked child

  void record_map(const void* begin, std::size_t bytes, wire::SiteKind kind,
                  const Registers& caller) noexcept;
  // To be called before the range is unmapped.
  void record_unmap(const void* begin, std::size_t bytes) noexcept;

  // What mremap is about to move: one mapping of the kernel may be several of ours.
  struct MovedRanges {
    static constexpr std::size_t kMaxPieces = 16;
    std::size_t count = 0;
    RangePiece piece[kMaxPieces];
    std::uint32_t file = 0;  // see Recorder::TakenBlock
    bool stay = false;       // mremap makes a second mapping of the same memory
  };
  // Takes the old range out before the call, because another thread may get its addresses before
  // that returns. To be followed by exactly one of finish_remap() and undo_remap().
  void begin_remap(const void* from, std::size_t old_bytes, bool stays,
                   MovedRanges& moved) noexcept;
  void undo_remap(const MovedRanges& moved) noexcept;
  // The new mapping keeps the kind and the epoch of the old one.
  void finish_remap(const MovedRanges& moved, const void* to, std::size_t bytes,
                    const Registers& caller) noexcept;

 private:
  static void count_released(void* recorder, const RangePiece& piece) noexcept;
  void insert(const void* begin, std::size_t bytes, wire::SiteKind kind, std::uint32_t epoch,
              const Registers& caller) noexcept;

  SiteRecorder* sites_ = nullptr;
  RangeTable ranges_;
};

}  // namespace tidemark::tracer
