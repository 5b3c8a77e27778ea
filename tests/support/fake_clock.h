// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/clock.h"

namespace tidemark::tests {

// A clock that the test turns by hand; `step_ns` makes every look at it cost time.
class FakeClock final : public Clock {
 public:
  std::int64_t monotonic_ns() const override {
    now_ns_ += step_ns;
    return now_ns_;
  }
  std::int64_t wall_ns() const override { return kWallOffsetNs + now_ns_; }
  void advance(std::int64_t ns) { now_ns_ += ns; }

  std::int64_t step_ns = 0;

 private:
  static constexpr std::int64_t kWallOffsetNs = 1'700'000'000 * kNsPerSecond;
  mutable std::int64_t now_ns_ = kNsPerSecond;
};

}  // namespace tidemark::tests
