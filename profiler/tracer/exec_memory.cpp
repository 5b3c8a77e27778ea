// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/exec_memory.h"

#include <atomic>
#include <cstdint>

#include "profiler/tracer/sys.h"
#include "profiler/tracer/tracer_state.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

constexpr std::size_t kSlots = 16;  // threads that start a large program at the same time

// Has the kernel write 0 to `word` when this process becomes another program or exits, if it shares
// its memory with others. Of a thread that others may join, libc needs that for itself; a child of
// vfork has none.
void clear_at_exec(std::atomic<std::uint32_t>* word) noexcept {
  sys::call_if_allowed(SYS_set_tid_address, sys::word(word));
}

}  // namespace

struct ExecMemory::Slot {
  std::atomic<std::uint32_t> is_taken;
  void* memory;
  std::size_t bytes;

  bool has_room_for(std::size_t wanted) noexcept {
    if (bytes < wanted) {
      give_back();
      memory = sys::map_private(wanted);
      bytes = memory == nullptr ? 0 : wanted;
    }
    return memory != nullptr;
  }
  void give_back() noexcept {
    if (memory != nullptr) {
      sys::unmap(memory, bytes);
    }
    memory = nullptr;
    bytes = 0;
  }
};

constinit ExecMemory::Slot ExecMemory::g_slots[kSlots] = {};

ExecMemory::ExecMemory(std::size_t bytes) noexcept : is_child_of_vfork_(is_child_of_vfork()) {
  for (Slot& slot : g_slots) {
    std::uint32_t no = 0;
    if (slot.is_taken.compare_exchange_strong(no, 1, std::memory_order_acquire)) {
      slot_ = &slot;
      break;
    }
  }
  if (slot_ == nullptr) {
    return;
  }
  if (is_child_of_vfork_) {
    clear_at_exec(&slot_->is_taken);
  }
  memory_ = slot_->has_room_for(bytes) ? slot_->memory : nullptr;
}

ExecMemory::~ExecMemory() {
  if (slot_ == nullptr) {
    return;
  }
  if (is_child_of_vfork_) {
    clear_at_exec(nullptr);
  }
  slot_->give_back();
  slot_->is_taken.store(0, std::memory_order_release);
}

}  // namespace tidemark::tracer
