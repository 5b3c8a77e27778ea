// SPDX-License-Identifier: Apache-2.0
// Random gaps between the points of the sampling process, without libm.
#pragma once

#include <bit>
#include <cstdint>

namespace tidemark::tracer {

// xorshift64*: never 0 from a seed that is not 0.
constexpr std::uint64_t next_random(std::uint64_t& state) {
  state ^= state >> 12U;
  state ^= state << 25U;
  state ^= state >> 27U;
  return state * 0x2545f4914f6cdd1d;
}

// The natural logarithm of a number in (0, 1].
constexpr double log_of_share(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int exponent = static_cast<int>((bits >> 52U) & 0x7ffU) - 1023;
  // In [1, 2), then by log(m) = 2 atanh((m - 1) / (m + 1)).
  const double m =
      std::bit_cast<double>((bits & 0xf'ffff'ffff'ffffU) | (std::uint64_t{1023} << 52U));
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double sum = 0.0;
  for (int i = 21; i >= 1; i -= 2) {
    sum = sum * q + 1.0 / i;
  }
  return 2.0 * s * sum + exponent * 0.69314718055994530942;
}

// How many bytes lie before the next point, at least 1.
constexpr std::uint64_t draw_gap(std::uint64_t& random, std::uint64_t period_bytes) {
  const double share = (static_cast<double>(next_random(random) >> 11U) + 1.0) * 0x1p-53;
  const double gap = -log_of_share(share) * static_cast<double>(period_bytes);
  constexpr double kMost = 0x1p62;  // nobody allocates that much
  return static_cast<std::uint64_t>(gap < kMost ? gap : kMost) + 1;
}

}  // namespace tidemark::tracer
