// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

// The nodes of the last new stack of a scratch slot, the outermost frame at the end. Where the
// hashes agree, the next new stack has the same nodes.
struct LastNodes {
  std::uint64_t hash[kMaxFrames] = {};  // 0: not known
  std::uint32_t node[kMaxFrames] = {};
};

struct Scratch {
  StackTrace trace;
  LastNodes nodes;
  // See ModuleTable::marks(); rarely needed.
  bool is_marked = false;
  std::uint64_t marks[kMaxFrames] = {};

  std::uint64_t mark(std::size_t frame) const noexcept { return is_marked ? marks[frame] : 0; }
};

// Memory for walking stacks: too large for the stack of a small thread, and worth keeping, because
// the next stack of a thread is mostly like its last one. A thread has no slot of its own, only one
// that it tries first: a thread that ends has nothing to give back.
class ScratchPool {
 public:
  // nullptr: all that were tried are in use.
  Scratch* claim() noexcept {
    if (t_thread.scratch == 0) {
      t_thread.scratch = 1 + next_.fetch_add(1, std::memory_order_relaxed) % kSlots;
    }
    for (std::uint32_t i = 0; i < kTries; ++i) {
      const std::uint32_t slot = (t_thread.scratch - 1 + i) % kSlots;
      if (!slots_[slot].busy.exchange(true, std::memory_order_acquire)) {
        t_thread.scratch = slot + 1;
        if (slot >= used_.load(std::memory_order_relaxed)) [[unlikely]] {
          note_use(slot);
        }
        return &slots_[slot].scratch;
      }
    }
    t_thread.scratch = (t_thread.scratch - 1 + kTries) % kSlots + 1;  // tries others the next time
    return nullptr;
  }
  // Not by t_thread.scratch: a signal handler may have claimed and given back another one
  // meanwhile.
  void give_back(const Scratch& scratch) noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(&scratch) -
                        reinterpret_cast<std::uintptr_t>(&slots_[0].scratch);
    slots_[offset / sizeof(Slot)].busy.store(false, std::memory_order_release);
  }
  void clear() noexcept {  // in a forked child: the threads that held slots are not there
    // Slots that were never used are not touched: they are pages without memory.
    for (std::uint32_t i = 0; i < used_.load(std::memory_order_relaxed); ++i) {
      Slot& slot = slots_[i];
      slot.busy.store(false, std::memory_order_relaxed);
      if (slot.scratch.trace.depth > 0) {
        slot.scratch.nodes = {};  // of the parent's file
      }
    }
  }

 private:
  void note_use(std::uint32_t slot) noexcept {
    std::uint32_t used = used_.load(std::memory_order_relaxed);
    while (used <= slot &&
           !used_.compare_exchange_weak(used, slot + 1, std::memory_order_relaxed)) {
    }
  }

  // Many more than processors, so that threads that run at once soon find a free one.
  static constexpr std::uint32_t kSlots = 512;
  static constexpr std::uint32_t kTries = 16;

  struct alignas(
      128) Slot {  // no false sharing, nor by pairs of cache lines that are fetched together
    std::atomic<bool> busy = false;
    Scratch scratch;
  };

  std::atomic<std::uint32_t> next_ = 0;
  std::atomic<std::uint32_t> used_ = 0;  // number of the last slot that was ever claimed, plus one
  Slot slots_[kSlots] = {};
};

}  // namespace tidemark::tracer
