// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidemark::tracer {

// How to get from a frame to its caller: where its CFA is (the stack pointer that the caller had
// before the call). The return address is always at CFA - 8.
enum class RuleKind : std::uint8_t {
  kNone = 0,         // no rule is known
  kFromSp = 1,       // CFA = sp + cfa_offset
  kFromBp = 2,       // CFA = bp + cfa_offset
  kAtBp = 3,         // CFA = the word at bp + cfa_offset: functions that realign the stack
  kSignalFrame = 4,  // the kernel's frame of a signal handler: sp points to its ucontext
  kEndOfStack = 5,   // the outermost function
  kNoTable = 6,      // code of a module that has no unwind table
  kUnsupported = 7,  // the table has something that we do not implement
};

// Where the caller's frame pointer is.
enum class BpRule : std::uint8_t {
  kSame = 0,       // still in the register
  kAtCfa = 1,      // the word at CFA + bp_offset
  kAtBp = 2,       // the word at bp + bp_offset
  kUndefined = 3,  // lost
};

struct Rule {
  RuleKind kind = RuleKind::kNone;
  BpRule bp = BpRule::kSame;
  std::int64_t cfa_offset = 0;  // bytes
  std::int64_t bp_offset = 0;   // bytes

  bool operator==(const Rule&) const = default;
};

// A rule in one half of a cache word: kind in bits 0-2, bp in 3-4, bp_offset / 8 in 5-15 and
// cfa_offset / 8 in 16-31, both signed. Never 0, except for kNone and what does not fit.
constexpr std::uint32_t pack_rule(const Rule& rule) noexcept {
  constexpr std::int64_t kCfaLimit = 8 * (std::int64_t{1} << 15);
  constexpr std::int64_t kBpLimit = 8 * (std::int64_t{1} << 10);
  if (rule.kind == RuleKind::kNone || (rule.bp == BpRule::kAtCfa && rule.bp_offset > -16) ||
      rule.cfa_offset % 8 != 0 || rule.bp_offset % 8 != 0 || rule.cfa_offset < -kCfaLimit ||
      rule.cfa_offset >= kCfaLimit || rule.bp_offset < -kBpLimit || rule.bp_offset >= kBpLimit) {
    return 0;
  }
  const auto cfa_words = static_cast<std::uint32_t>(rule.cfa_offset / 8);
  const auto bp_words = static_cast<std::uint32_t>(rule.bp_offset / 8);
  return (cfa_words << 16) | ((bp_words & 0x7ffU) << 5) |
         (static_cast<std::uint32_t>(rule.bp) << 3) | static_cast<std::uint32_t>(rule.kind);
}

constexpr Rule unpack_rule(std::uint32_t packed) noexcept {
  return {static_cast<RuleKind>(packed & 7U), static_cast<BpRule>((packed >> 3) & 3U),
          std::int64_t{static_cast<std::int16_t>(packed >> 16)} * 8,
          std::int64_t{static_cast<std::int16_t>(packed & 0xffffU) >> 5} * 8};
}

// How far below the CFA a plain rule reads the frame pointer, in words; 0: still in the register.
constexpr std::uint16_t bp_words_below_cfa(std::uint32_t packed) noexcept {
  return static_cast<std::uint16_t>((0x800U - (packed >> 5 & 0x7ffU)) & 0x7ffU);
}

// Whether a step by this rule reads only words at fixed offsets from the CFA: the return address
// and, if it was saved, the frame pointer.
constexpr bool is_plain_rule(std::uint32_t packed) noexcept {
  constexpr auto kPlainKinds = (1U << static_cast<unsigned>(RuleKind::kFromSp)) |
                               (1U << static_cast<unsigned>(RuleKind::kFromBp));
  constexpr auto kSavedAtCfa = static_cast<unsigned>(BpRule::kAtCfa) * 8;
  constexpr auto kPlain = kPlainKinds | (kPlainKinds << kSavedAtCfa);
  return ((kPlain >> (packed & 31U)) & 1U) != 0;
}

}  // namespace tidemark::tracer
