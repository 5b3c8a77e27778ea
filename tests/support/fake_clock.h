// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/clock.h"

namespace tidemark::tests {

// A clock that stands still until the test turns it.
class FakeClock final : public Clock {
 public:
  std::int64_t now_ns = kNsPerSecond;
  std::int64_t booted_ns = 0;  // when, on the same clock

  std::int64_t monotonic_ns() const override { return now_ns; }
  std::int64_t wall_ns() const override { return now_ns; }
  std::int64_t boot_ns() const override { return now_ns - booted_ns; }
  void advance_s(double seconds) {
    now_ns += static_cast<std::int64_t>(seconds * static_cast<double>(kNsPerSecond));
  }
};

}  // namespace tidemark::tests
