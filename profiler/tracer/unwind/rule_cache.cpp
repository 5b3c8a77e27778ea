// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/rule_cache.h"

#include "profiler/tracer/unwind/cfi.h"
#include "profiler/tracer/unwind/module_lookup.h"

namespace tidemark::tracer {

alignas(64) constinit std::atomic<std::uint64_t> g_rule_slots[kRuleSlots] = {};
constinit std::atomic<std::uint32_t> g_rule_generation{1};

namespace {

// Writes the rule to its slot. The entry that was there moves to the neighbouring slot, and the one
// there is dropped. The tag includes the lowest bit of the slot number, so that an entry in the
// wrong one of two neighbours is not taken for another address.
void store_rule(std::uint64_t pc, std::uint32_t packed, std::uint32_t generation) noexcept {
  const RuleKey key = rule_key(pc);
  std::atomic<std::uint64_t>& first = g_rule_slots[key.slot];
  std::atomic<std::uint64_t>& second = g_rule_slots[key.slot ^ 1U];
  const std::uint64_t before = first.load(std::memory_order_relaxed);
  if (before != 0 && static_cast<std::uint32_t>(before) != key.tag) {
    second.store(before, std::memory_order_relaxed);
  }
  first.store(std::uint64_t{packed} << 32 | key.tag, std::memory_order_seq_cst);
  if (g_rule_generation.load(std::memory_order_seq_cst) != generation) {
    // A module was unloaded meanwhile: this rule may be one of its rules.
    first.store(0, std::memory_order_relaxed);
    second.store(0, std::memory_order_relaxed);
  }
}

}  // namespace

Rule return_rule(std::uint64_t pc) noexcept {
  if (const std::uint32_t packed = packed_rule_of(cached_slot(pc)); packed != 0) {
    return unpack_rule(packed);
  }
  const std::uint32_t generation = rule_generation();
  LoadedModule module;
  if (!find_module(pc - 1, module)) {
    return {};  // not cached: code of a JIT, or a module that is loaded later
  }
  const Rule rule = rule_from_tables(module, pc - 1);
  if (const std::uint32_t packed = pack_rule(rule); packed != 0 && pc <= kAddressMask) {
    store_rule(pc, packed, generation);
  }
  return rule;
}

Rule instruction_rule(std::uint64_t pc) noexcept {
  LoadedModule module;
  return find_module(pc, module) ? rule_from_tables(module, pc) : Rule{};
}

void forget_rules() noexcept {
  g_rule_generation.fetch_add(1, std::memory_order_seq_cst);
  for (std::atomic<std::uint64_t>& slot : g_rule_slots) {
    if (slot.load(std::memory_order_relaxed) != 0) {
      slot.store(0, std::memory_order_seq_cst);
    }
  }
}

}  // namespace tidemark::tracer
