// SPDX-License-Identifier: Apache-2.0
// The mathematics of sampling by bytes, for both sides. Each allocated byte is a sampling point
// with the same small probability, one in `period` bytes on average; a block is recorded when it
// holds a point, which has the probability 1 - exp(-size / period). Its weight is the inverse of
// that.
#pragma once

#include <cstdint>

namespace tidemark::wire {

// 1 - exp(-x) for x >= 0, without libm: x is halved until a short series is exact enough, then the
// result is doubled as often.
constexpr double probability_of_sample(double x) {
  if (x > 40.0) {
    return 1.0;
  }
  int doublings = 0;
  while (x > 0.01) {
    x *= 0.5;
    ++doublings;
  }
  // exp(-x) - 1 = -x + x^2/2 - x^3/6 + x^4/24 - x^5/120
  double result = -x * (1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0))));
  for (; doublings > 0; --doublings) {
    result *= result + 2.0;  // exp(-2x) - 1 = (exp(-x) - 1) (exp(-x) + 1)
  }
  return -result;
}

// How many blocks of this size one recorded block stands for. Period 0: every block is recorded.
// A block of 0 bytes is sampled as one of 1 byte.
constexpr double sample_weight(std::uint64_t size_bytes, std::uint64_t period_bytes) {
  if (period_bytes == 0) {
    return 1.0;
  }
  const double size = size_bytes == 0 ? 1.0 : static_cast<double>(size_bytes);
  return 1.0 / probability_of_sample(size / static_cast<double>(period_bytes));
}

}  // namespace tidemark::wire
