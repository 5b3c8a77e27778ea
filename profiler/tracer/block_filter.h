// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

// Tells for nearly every block that is not recorded that it is not, by one load. A counting Bloom
// filter with one hash of the address; a counter that is saturated stays so. Lock-free.
class BlockFilter {
 public:
  bool may_hold(const void* block) const noexcept {
    return counts_[slot_of(block)].load(std::memory_order_relaxed) != 0;
  }
  void add(const void* block) noexcept { change(block, 1); }
  void remove(const void* block) noexcept { change(block, -1); }

  // For exact mode: may_hold() is true for every block, and add() and remove() are not needed.
  void hold_all() noexcept {
    for (auto& count : counts_) {
      count.store(kSaturated, std::memory_order_relaxed);
    }
    all_.store(true, std::memory_order_relaxed);
  }
  bool holds_all() const noexcept { return all_.load(std::memory_order_relaxed); }
  // Ends hold_all(): `each_block(visit)` calls visit(address) for the blocks that are recorded.
  // Their counters stay saturated, the others become 0. The blocks are visited twice: one that is
  // recorded between the visits is seen by the second or has called add(). One thread at a time.
  template <typename EachBlock>
  void hold_only(EachBlock each_block) noexcept {
    __builtin_memcpy(kept_, pinned_, sizeof(kept_));
    each_block([this](std::uint64_t address) {
      const std::size_t at = slot_of(reinterpret_cast<const void*>(address));
      kept_[at / 8] = static_cast<std::uint8_t>(kept_[at / 8] | (1U << (at % 8)));
    });
    all_.store(false, std::memory_order_relaxed);
    for (std::size_t at = 0; at < kSlots; ++at) {
      if ((kept_[at / 8] & (1U << (at % 8))) == 0) {
        counts_[at].store(0, std::memory_order_relaxed);
      }
    }
    each_block([this](std::uint64_t address) { hold(reinterpret_cast<const void*>(address)); });
  }
  // may_hold() is true for this block from now on, also after hold_only().
  void pin(const void* block) noexcept {
    hold(block);
    const std::size_t at = slot_of(block);
    std::atomic_ref(pinned_[at / 8])
        .fetch_or(static_cast<std::uint8_t>(1U << (at % 8)), std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kSlots = 65536;
  static constexpr std::uint8_t kSaturated = 255;

  // Neighbouring blocks have neighbouring counters, which share cache lines. The upper bits
  // separate blocks that each begin a page or a mapping.
  static std::size_t slot_of(const void* block) noexcept {
    const auto address = reinterpret_cast<std::uint64_t>(block);
    return ((address >> 8U) ^ (address >> 24U)) % kSlots;
  }
  void hold(const void* block) noexcept {
    counts_[slot_of(block)].store(kSaturated, std::memory_order_relaxed);
  }
  void change(const void* block, int by) noexcept {
    std::atomic<std::uint8_t>& count = counts_[slot_of(block)];
    std::uint8_t seen = count.load(std::memory_order_relaxed);
    while (seen != kSaturated &&
           !count.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen + by),
                                        std::memory_order_relaxed)) {
    }
  }

  std::atomic<bool> all_ = false;
  std::uint8_t kept_[kSlots / 8] = {};  // of hold_only()
  std::uint8_t pinned_[kSlots / 8] = {};
  std::atomic<std::uint8_t> counts_[kSlots] = {};
};

}  // namespace tidemark::tracer
