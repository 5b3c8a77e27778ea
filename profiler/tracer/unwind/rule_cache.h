// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/unwind/rule.h"

namespace tidemark::tracer {

// Rules by return address, shared by all threads. A slot is one atomic word, so that it is never
// read half written. The table uses memory as it fills, at most 512 KiB.
//
// An address has 47 bits. Multiplication by an odd number modulo 2^47 maps it to another one, no
// two to the same. The upper 16 bits of that choose the slot or its neighbour, the lower 32 are
// stored with the packed rule: together they are the whole key.
inline constexpr unsigned kRuleSlotBits = 16;
inline constexpr std::size_t kRuleSlots = std::size_t{1} << kRuleSlotBits;
inline constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << 47) - 1;

// Hidden, because code in a shared object would else access them through the GOT.
// NOLINTBEGIN(bugprone-dynamic-static-initializers): constinit says that they are not
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint64_t> g_rule_slots[kRuleSlots];
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint32_t> g_rule_generation;
// NOLINTEND(bugprone-dynamic-static-initializers)

struct RuleKey {
  std::size_t slot;
  std::uint32_t tag;  // the lower half of a slot; the upper half is the packed rule
};

constexpr RuleKey rule_key(std::uint64_t pc) noexcept {
  // The factor is shifted by 17, so that the product modulo 2^64 is that modulo 2^47, shifted
  // by 17.
  const std::uint64_t mixed = pc * (0x9e3779b97f4a7c15ULL << 17);
  return {static_cast<std::size_t>(mixed >> (64 - kRuleSlotBits)),
          static_cast<std::uint32_t>(mixed >> 17)};
}

// The slot with the rule of the return address `pc`; 0: not in the cache.
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

// The same as by unpack_rule(), with fewer instructions: the walk waits for this number.
constexpr std::uint64_t cfa_offset_of(std::uint64_t slot) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(slot) >> 48) * 8;
}

// The rule of a return address: from the cache, or from the tables of its module (then cached).
Rule return_rule(std::uint64_t pc) noexcept;

// The rule of the instruction at `pc` itself, for what a signal interrupted. Not cached.
Rule instruction_rule(std::uint64_t pc) noexcept;

// Drops all rules, and makes unwind() reuse no earlier trace: a module was unloaded, and other code
// may be loaded at its addresses. Any thread, any time.
void forget_rules() noexcept;

inline std::uint32_t rule_generation() noexcept {
  return g_rule_generation.load(std::memory_order_acquire);
}

}  // namespace tidemark::tracer
