// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

// Tells for nearly every block that it is not recorded, by one load: counts the recorded blocks by
// a hash of their address. A count that reached its top stays there for ever.
class BlockFilter {
 public:
  bool may_hold(const void* block) const noexcept {
    return counts_[place(block)].load(std::memory_order_relaxed) != 0;
  }
  void add(const void* block) noexcept { change(block, 1); }
  void remove(const void* block) noexcept { change(block, -1); }

  // Every block may be recorded: none is asked for twice while all of them are.
  void hold_all() noexcept { fill(kTop); }
  bool holds_all() const noexcept { return all_.load(std::memory_order_relaxed); }
  void clear() noexcept { fill(0); }

 private:
  static constexpr std::size_t kPlaces = 65536;
  static constexpr std::uint8_t kTop = 255;

  static std::size_t place(const void* block) noexcept {
    return (reinterpret_cast<std::uint64_t>(block) * 0x9e3779b97f4a7c15) >> 48U;
  }
  void change(const void* block, int by) noexcept {
    std::atomic<std::uint8_t>& count = counts_[place(block)];
    std::uint8_t seen = count.load(std::memory_order_relaxed);
    while (seen != kTop && !count.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen + by),
                                                        std::memory_order_relaxed)) {
    }
  }
  void fill(std::uint8_t value) noexcept {
    for (auto& count : counts_) {
      count.store(value, std::memory_order_relaxed);
    }
    all_.store(value == kTop, std::memory_order_relaxed);
  }

  std::atomic<bool> all_ = false;
  std::atomic<std::uint8_t> counts_[kPlaces] = {};
};

}  // namespace tidemark::tracer
