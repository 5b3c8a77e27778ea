// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/unwind/rule.h"

namespace tidemark::tracer {

// Rules by return address, shared by all threads. A slot is one atomic word, so that no reader ever
// sees half of it, and the table is zero pages until it is used: at most 512 KiB.
//
// An address has 47 bits. Multiplied by an odd number modulo 2^47 it becomes another one, and no
// two become the same: its upper 16 bits choose the slot, or the slot beside it, and its lower 32
// bits are stored with the packed rule. Together they are the whole key.
inline constexpr unsigned kRuleSlotBits = 16;
inline constexpr std::size_t kRuleSlots = std::size_t{1} << kRuleSlotBits;
inline constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << 47) - 1;

// Hidden, or code in a shared object would look up their addresses each time.
// NOLINTBEGIN(bugprone-dynamic-static-initializers): constinit says that they are not
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint64_t> g_rule_slots[kRuleSlots];
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint32_t> g_rule_generation;
// NOLINTEND(bugprone-dynamic-static-initializers)

struct RuleKey {
  std::size_t slot;
  std::uint32_t tag;  // the lower half of a slot; the upper half is the packed rule
};

constexpr RuleKey rule_key(std::uint64_t pc) noexcept {
  // The factor is even by 17 bits: the product modulo 2^47, shifted up by 17.
  const std::uint64_t mixed = pc * (0x9e3779b97f4a7c15ULL << 17);
  return {static_cast<std::size_t>(mixed >> (64 - kRuleSlotBits)),
          static_cast<std::uint32_t>(mixed >> 17)};
}

// The slot with the rule of the return address `pc`; 0 when it is in none.
[[gnu::always_inline]] inline std::uint64_t cached_slot(std::uint64_t pc) noexcept {
  const RuleKey key = rule_key(pc);
  std::uint64_t word = g_rule_slots[key.slot].load(std::memory_order_relaxed);
  if (static_cast<std::uint32_t>(word) != key.tag || pc > kAddressMask) [[unlikely]] {
    word = g_rule_slots[key.slot ^ 1U].load(std::memory_order_relaxed);
    if (static_cast<std::uint32_t>(word) != key.tag || pc > kAddressMask) {
      return 0;
    }
  }
  return word;
}

constexpr std::uint32_t packed_rule_of(std::uint64_t slot) noexcept {
  return static_cast<std::uint32_t>(slot >> 32);
}

// The same as unpacking the rule, in one instruction: the walk waits for this number.
constexpr std::uint64_t cfa_offset_of(std::uint64_t slot) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(slot) >> 48) * 8;
}

// The rule of a return address: from the cache, or from the tables of its module (then cached).
Rule return_rule(std::uint64_t pc) noexcept;

// The rule of the instruction at `pc` itself, for what a signal interrupted. Not cached.
Rule instruction_rule(std::uint64_t pc) noexcept;

// Drops all rules, and all traces as sources of reuse: a module was unloaded, its addresses may
// come back with other code. Any thread, any time.
void forget_rules() noexcept;

inline std::uint32_t rule_generation() noexcept {
  return g_rule_generation.load(std::memory_order_acquire);
}

}  // namespace tidemark::tracer
