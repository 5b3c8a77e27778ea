// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/unwind/byte_reader.h"
#include "profiler/tracer/unwind/stack_bounds.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

// Knows stacks that were walked before, and the number that somebody has given them. Whether the
// stack of the calling thread is one of them is seen without walking it: a step reads the return
// address, and sometimes the frame pointer, from places that are as far from the innermost frame as
// they were then; where all these words are the same, so are all steps. They do not wait for each
// other, as the steps of a walk do. An entry is the places and a hash of the words: one or two
// lines of the cache.
//
// A stack is looked for by its innermost return address and by how deep it is. Where several have
// both in common, a branch says which further word of the stack tells them apart: that of the first
// frame in which two of them differ.
//
// Shared by all threads. Lock-free: an entry has a sequence number that is odd while it is written,
// and a reader that saw it change has found nothing. What finds no place takes that of another. All
// zero is an empty memo; memory is used as stacks come.
class StackCache {
 public:
  // `context`: what else tells stacks apart, and what makes all that was kept before worthless when
  // it changes. False: not known, or a word of it lies in `excluded`.
  bool find(const Registers& registers, StackBounds bounds, std::uint64_t context,
            ByteRange excluded, std::uint32_t& number) noexcept;
  // `trace` is what unwind() has just made of the same registers and bounds. One that cannot be
  // checked in this way is left out.
  void add(const Registers& registers, StackBounds bounds, std::uint64_t context,
           const StackTrace& trace, std::uint32_t number) noexcept;

  // Memory that is in use.
  std::uint64_t bytes() const noexcept {
    const std::uint64_t used = used_.load(std::memory_order_relaxed);
    return used * (sizeof(Entry) + sizeof(FrameHashes)) +
           (used != 0 ? sizeof(branches_) + sizeof(tags_) : 0);
  }

 private:
  static constexpr std::size_t kMaxPlaces = 140;
  static constexpr std::size_t kEntries = 8192;  // powers of two
  static constexpr std::size_t kWays = 8;        // a stack is in one of so many: a line of tags
  static constexpr std::size_t kBranches = 32768;
  static constexpr std::uint64_t kPlaceMask = 0xffff;  // of a branch: a place, plus one; then a tag

  // An atomic number, but one that a compiler need not construct: there are too many of them.
  struct Shared {
    std::uint16_t raw;
    std::uint16_t load() const noexcept { return __atomic_load_n(&raw, __ATOMIC_RELAXED); }
    void store(std::uint16_t value) noexcept { __atomic_store_n(&raw, value, __ATOMIC_RELAXED); }
  };

  // What of a stack is compared. Places are in words above the innermost frame: those of the return
  // addresses, from the inside, but for the first one; then those of frame pointers that a step
  // went by, which must lead to the same place of the stack as then.
  struct Shape {
    std::uint64_t hash = 0;
    std::uint16_t addresses = 0;
    std::uint16_t pointers = 0;
    std::uint16_t place[kMaxPlaces];
  };
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> hash;
    std::atomic<std::uint32_t> sequence;
    std::atomic<std::uint32_t> generation;  // of the rules
    std::atomic<std::uint32_t> number;
    std::atomic<std::uint16_t> addresses;
    std::atomic<std::uint16_t> pointers;
    std::atomic<bool> was_found;  // since it was last thought of to be replaced
    Shared place[kMaxPlaces];
  };
  // Some bits of each return address of an entry: where does another stack differ?
  struct FrameHashes {
    Shared of[kMaxFrames];
  };
  struct Stack {
    std::uint64_t sp;
    std::uint64_t bp;
    std::uint64_t words;  // above sp, that may be loaded
  };

  static bool measure(const StackTrace& trace, const Stack& stack, Shape& shape) noexcept;
  static bool touches(const Entry& entry, const Stack& stack, std::uint64_t ip,
                      ByteRange excluded) noexcept;
  std::uint64_t follow_branches(std::uint64_t tag, const Stack& stack) const noexcept;
  void add_branch(std::uint64_t tag, const StackTrace& trace) noexcept;
  std::size_t choose_entry(std::uint64_t tag, std::uint32_t generation) noexcept;
  std::size_t find_tag(std::uint64_t tag) const noexcept;

  std::atomic<std::uint64_t> used_ = 0;
  std::atomic<std::uint32_t> next_way_ = 0;
  std::atomic<std::uint64_t> branches_[kBranches] = {};
  alignas(64) std::atomic<std::uint64_t> tags_[kEntries] = {};  // of the entries; 0: empty
  Entry entries_[kEntries] = {};
  FrameHashes frame_hashes_[kEntries] = {};
};

}  // namespace tidemark::tracer
