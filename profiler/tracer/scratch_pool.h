// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/python/mixed_stack.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

// The nodes of the last new stack of a scratch slot, the outermost frame at the end. Where the
// hashes agree, the next new stack has the same nodes.
struct LastNodes {
  std::uint64_t hash[kMaxStack] = {};  // 0: not known
  std::uint32_t node[kMaxStack] = {};
};

// No false sharing, nor by pairs of cache lines that are fetched together.
struct alignas(128) Scratch {
  StackTrace trace;
  LastNodes nodes;
  std::uint64_t marks[kMaxFrames] = {};  // see ModuleTable::marks(); rarely needed
  std::atomic<bool> busy = false;        // the pool's
  // Last, as programs without Python never touch them.
  PythonFrames python;
  MixedStack mixed;
};

// Memory for walking stacks: too large for the stack of a small thread, and worth keeping, because
// the next stack of a thread is mostly like its last one. A thread has no slot of its own, only one
// that it tries first: a thread that ends has nothing to give back. Slots get their memory when a
// thread first comes to them, a few at a time. All zero is a pool without memory.
class ScratchPool {
 public:
  // nullptr: all that were tried are in use.
  Scratch* claim() noexcept {
    if (t_thread.scratch == 0) {
      t_thread.scratch = 1 + next_.fetch_add(1, std::memory_order_relaxed) % kSlots;
    }
    for (std::uint32_t i = 0; i < kTries; ++i) {
      std::uint32_t slot = (t_thread.scratch - 1 + i) % kSlots;
      Scratch* const scratch = at(slot);
      if (scratch != nullptr && !scratch->busy.exchange(true, std::memory_order_acquire)) {
        t_thread.scratch = slot + 1;
        return scratch;
      }
    }
    t_thread.scratch = (t_thread.scratch - 1 + kTries) % kSlots + 1;  // tries others the next time
    return nullptr;
  }
  // Not by t_thread.scratch: a signal handler may have claimed and given back another one
  // meanwhile.
  static void give_back(Scratch& scratch) noexcept {
    scratch.busy.store(false, std::memory_order_release);
  }
  // Makes room for a time when there is no memory.
  void grow_ahead() noexcept {
    for (std::uint32_t slot = 0; slot < kSlotsAhead; slot += kSlotsPerPart) {
      std::uint32_t unused = slot;
      at(unused);
    }
  }
  void clear() noexcept {  // in a forked child: the threads that held slots are not there
    for (const auto& part : parts_) {
      Scratch* const slots = part.load(std::memory_order_relaxed);
      for (std::uint32_t i = 0; slots != nullptr && i < kSlotsPerPart; ++i) {
        // Slots that were never used are not written to: they are pages without memory.
        if (slots[i].busy.load(std::memory_order_relaxed)) {
          slots[i].busy.store(false, std::memory_order_relaxed);
        }
        if (slots[i].trace.depth > 0) {
          slots[i].nodes = {};  // of the parent's file
        }
      }
    }
  }

 private:
  // Where there is no memory for the slot, `slot` becomes one of the first, which others share.
  // nullptr: there are not even those.
  Scratch* at(std::uint32_t& slot) noexcept {
    Scratch* slots = parts_[slot / kSlotsPerPart].load(std::memory_order_acquire);
    if (slots == nullptr) [[unlikely]] {
      slots = add_part(slot / kSlotsPerPart);
      if (slots == nullptr) {
        slot %= kSlotsPerPart;
        slots = parts_[0].load(std::memory_order_acquire);
      }
    }
    return slots == nullptr ? nullptr : slots + slot % kSlotsPerPart;
  }
  [[gnu::noinline]] Scratch* add_part(std::uint32_t part) noexcept {
    auto* const fresh = static_cast<Scratch*>(sys::map_private(kSlotsPerPart * sizeof(Scratch)));
    Scratch* there = nullptr;
    if (fresh == nullptr ||
        parts_[part].compare_exchange_strong(there, fresh, std::memory_order_acq_rel)) {
      return fresh;
    }
    sys::unmap(fresh, kSlotsPerPart * sizeof(Scratch));  // another thread was faster
    return there;
  }

  // Many more than processors, so that threads that run at once soon find a free one.
  static constexpr std::uint32_t kSlots = 512;
  static constexpr std::uint32_t kTries = 16;
  static constexpr std::uint32_t kSlotsPerPart = 8;
  static constexpr std::uint32_t kSlotsAhead = 64;

  std::atomic<std::uint32_t> next_ = 0;
  std::atomic<Scratch*> parts_[kSlots / kSlotsPerPart] = {};
};

}  // namespace tidemark::tracer
