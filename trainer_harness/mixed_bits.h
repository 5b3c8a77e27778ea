// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidemark::harness {

// Equal arguments give equal bits, neighbouring ones give unrelated bits: the same on every
// machine and with every library, unlike the distributions of <random>.
constexpr std::uint64_t mixed_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t bits = seed * 0x9E3779B97F4A7C15U + index;
  for (const std::uint64_t factor : {0xD6E8FEB86659FD93U, 0xD6E8FEB86659FD93U}) {
    bits = (bits ^ (bits >> 32U)) * factor;
  }
  return bits ^ (bits >> 32U);
}

}  // namespace tidemark::harness
