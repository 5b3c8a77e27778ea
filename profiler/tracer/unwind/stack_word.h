// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace tidemark::tracer {

// A word of a stack. In assembly because it belongs to another function: a sanitizer would call it
// poisoned.
[[gnu::always_inline]] inline std::uint64_t load_word(std::uint64_t address) noexcept {
#if defined(__x86_64__)
  std::uint64_t value;
  asm volatile("mov %1, %0" : "=r"(value) : "m"(*std::bit_cast<const std::uint64_t*>(address)));
  return value;
#else
  return *std::bit_cast<const std::uint64_t*>(address);
#endif
}

}  // namespace tidemark::tracer
