// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/units.h"

namespace tidemark::monitor {

// Says when memory grew by more than `rate.bytes` within `rate.per` seconds or steps: an early
// word to somebody who watches, not a verdict. After a warning the window starts anew, so that a
// steady climb warns once per window. Where more than a window lies between two samples, as many
// times as much may have come. Memory is bounded however long the window is. Pure.
class GrowthWarning {
 public:
  explicit GrowthWarning(Rate rate);

  struct Warning {
    std::uint64_t growth_bytes = 0;
    double over = 0.0;  // seconds or steps in which it grew
  };
  // `at` is in the rate's unit: seconds, or steps.
  std::optional<Warning> add(double at, std::uint64_t bytes);

  const Rate& rate() const { return rate_; }

 private:
  struct Low {  // the lowest point of a stretch of the window
    double from;
    double at;
    std::uint64_t bytes;
  };

  Rate rate_;
  std::deque<Low> lows_;
};

// The default: 5 % of the limit per minute.
Rate default_growth_rate(std::uint64_t limit_bytes);

}  // namespace tidemark::monitor
