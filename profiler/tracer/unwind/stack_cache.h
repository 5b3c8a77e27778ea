// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/unwind/byte_reader.h"
#include "profiler/tracer/unwind/stack_bounds.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

// A cache from stacks that were walked before to a number that the caller gives each of them. The
// stack of the calling thread is recognised without walking it. A walk reads return addresses, and
// sometimes frame pointers, at certain distances from the innermost frame; if all these words are
// as they were, the walk would give the same frames. Unlike the steps of a walk, these loads do not
// depend on each other. An entry holds the distances and a hash of the words: one or two cache
// lines.
//
// A stack is looked up by its innermost return address and its depth in bytes. Where several stacks
// have both in common, a branch says which further word tells them apart: the return address of the
// first frame in which two of them differ.
//
// Shared by all threads. Lock-free: the sequence number of an entry is odd while it is written, and
// a reader that sees it change has a miss. Entries replace each other. All zero is a cache without
// memory, which never holds anything; with enable() memory is used as it fills.
class StackCache {
 public:
  // Gets memory, unless it has some. Nothing changes when there is none.
  void enable() noexcept;
  bool is_enabled() const noexcept { return tables_.load(std::memory_order_relaxed) != nullptr; }
  // `context` is a part of the key. False: not in the cache, or a return address lies in
  // `excluded`.
  bool find(const Registers& registers, StackBounds bounds, std::uint64_t context,
            ByteRange excluded, std::uint64_t& number) noexcept;
  // `trace` is what unwind() has just made of the same registers and bounds. Not every trace can be
  // recognised without a walk; others are not added.
  void add(const Registers& registers, StackBounds bounds, std::uint64_t context,
           const StackTrace& trace, std::uint64_t number) noexcept;

  // Memory that is in use.
  std::uint64_t bytes() const noexcept {
    const std::uint64_t used = used_.load(std::memory_order_relaxed);
    return used * (sizeof(Entry) + sizeof(FrameHashes)) +
           (used != 0 ? sizeof(Tables::branches) + sizeof(Tables::tags) : 0);
  }

 private:
  static constexpr std::size_t kMaxPlaces = 140;
  static constexpr std::size_t kEntries = 8192;  // powers of two
  static constexpr std::size_t kWays =
      8;  // candidate entries of a stack; their tags are one cache line
  static constexpr std::size_t kBranches = 32768;
  static constexpr std::uint64_t kPlaceMask =
      0xffff;  // of a branch: place plus one; the rest is a tag

  // An atomic number without a constructor: the compiler would run one for each element.
  struct Shared {
    std::uint16_t raw;
    std::uint16_t load() const noexcept { return __atomic_load_n(&raw, __ATOMIC_RELAXED); }
    void store(std::uint16_t value) noexcept { __atomic_store_n(&raw, value, __ATOMIC_RELAXED); }
  };

  // What is compared of a stack. Places are in words above the innermost frame: those of the return
  // addresses, innermost first and without the first one; then those of frame pointers that a step
  // used, which must point to the same place of the stack as before.
  struct Shape {
    std::uint64_t hash = 0;
    std::uint16_t addresses = 0;
    std::uint16_t pointers = 0;
    std::uint16_t place[kMaxPlaces];
  };
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> hash;
    std::atomic<std::uint64_t> number;
    std::atomic<std::uint32_t> sequence;
    std::atomic<std::uint32_t> generation;  // of the rules
    std::atomic<std::uint16_t> addresses;
    std::atomic<std::uint16_t> pointers;
    std::atomic<bool> was_found;  // since it was last considered for replacement
    Shared place[kMaxPlaces];
  };
  // 16 bits of each return address of an entry, to see in which frame another stack differs.
  struct FrameHashes {
    Shared of[kMaxFrames];
  };
  struct Tables {  // 5 MiB
    std::atomic<std::uint64_t> branches[kBranches];
    alignas(64) std::atomic<std::uint64_t> tags[kEntries];  // of the entries; 0: empty
    Entry entries[kEntries];
    FrameHashes frame_hashes[kEntries];
  };
  struct Stack {
    std::uint64_t sp;
    std::uint64_t bp;
    std::uint64_t words;  // readable above sp
  };

  static bool measure(const StackTrace& trace, const Stack& stack, Shape& shape) noexcept;
  static bool touches(const Entry& entry, const Stack& stack, std::uint64_t ip,
                      ByteRange excluded) noexcept;
  static std::uint64_t follow_branches(const Tables& tables, std::uint64_t tag,
                                       const Stack& stack) noexcept;
  static void add_branch(Tables& tables, std::uint64_t tag, const StackTrace& trace) noexcept;
  static std::size_t find_tag(const Tables& tables, std::uint64_t tag) noexcept;
  std::size_t choose_entry(Tables& tables, std::uint64_t tag, std::uint32_t generation) noexcept;

  std::atomic<Tables*> tables_ = nullptr;
  std::atomic<std::uint64_t> used_ = 0;
  std::atomic<std::uint32_t> next_way_ = 0;
};

}  // namespace tidemark::tracer
