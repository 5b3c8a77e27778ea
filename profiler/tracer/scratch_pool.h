// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

// Room for the stacks that are being walked: too large for the stack of a small thread, and better
// kept, because the next stack of a thread is mostly its last one. Threads have no slot of their
// own, only one that they try first: a thread that ends has nothing to give back.
class ScratchPool {
 public:
  // nullptr: all that were tried are in use.
  StackTrace* claim() noexcept {
    constexpr std::uint32_t kTries = 8;
    if (t_thread.scratch == 0) {
      t_thread.scratch = 1 + next_.fetch_add(1, std::memory_order_relaxed) % kSlots;
    }
    for (std::uint32_t i = 0; i < kTries; ++i) {
      const std::uint32_t slot = (t_thread.scratch - 1 + i) % kSlots;
      if (!slots_[slot].busy.exchange(true, std::memory_order_acquire)) {
        t_thread.scratch = slot + 1;
        return &slots_[slot].trace;
      }
    }
    return nullptr;
  }
  void give_back() noexcept {
    slots_[t_thread.scratch - 1].busy.store(false, std::memory_order_release);
  }
  void clear() noexcept {  // in a forked child: the threads that held slots are not there
    for (Slot& slot : slots_) {
      slot.busy.store(false, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::uint32_t kSlots = 64;

  struct alignas(128) Slot {  // two threads never write to one cache line, nor to a pair of them
    std::atomic<bool> busy = false;
    StackTrace trace;
  };

  std::atomic<std::uint32_t> next_ = 0;
  Slot slots_[kSlots] = {};
};

}  // namespace tidemark::tracer
