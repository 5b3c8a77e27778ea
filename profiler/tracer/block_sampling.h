// SPDX-License-Identifier: Apache-2.0
// Which blocks of the heap are recorded in sampled mode, and what a recorded block counts for.
// wire/sampling.h has the mathematics that the reader shares.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// xorshift64*: never 0 from a seed that is not 0.
constexpr std::uint64_t next_random(std::uint64_t& state) {
  state ^= state >> 12U;
  state ^= state << 25U;
  state ^= state >> 27U;
  return state * 0x2545f4914f6cdd1d;
}

// The natural logarithm of a number in (0, 1], without libm.
constexpr double log_of_fraction(double x) {
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

// Bytes to the next point of the sampling process, at least 1.
constexpr std::uint64_t draw_gap(std::uint64_t& random, std::uint64_t period_bytes) {
  const double fraction = (static_cast<double>(next_random(random) >> 11U) + 1.0) * 0x1p-53;
  const double gap = -log_of_fraction(fraction) * static_cast<double>(period_bytes);
  constexpr double kMax = 0x1p62;  // more than any process allocates
  return static_cast<std::uint64_t>(gap < kMax ? gap : kMax) + 1;
}

// Whether a block of the calling thread is a sample; sets the countdown of the thread. `period`:
// the index of the sampling period in the header. A sample whose period finds no place there is
// counted as lost.
bool sample_block(wire::Header& header, std::size_t bytes, std::uint8_t& period) noexcept;

// What is added to the counters of a site.
struct SiteCount {
  std::uint64_t bytes;
  std::uint64_t block_units;
};

SiteCount count_of_sample(const wire::Header& header, const wire::LiveRecord& record) noexcept;

// What a recorded block stands for: itself, or, if sampled, as many blocks as its weight says.
inline SiteCount count_of(const wire::Header& header, const wire::LiveRecord& record) noexcept {
  if (wire::unpack_period(record.size_and_period) == 0) {
    return {wire::unpack_size(record.size_and_period), wire::kBlockUnit};
  }
  return count_of_sample(header, record);
}

}  // namespace tidemark::tracer
