// SPDX-License-Identifier: Apache-2.0
#include "monitor/growth_warning.h"

#include <algorithm>

namespace tidemark::monitor {
namespace {

constexpr double kStretchesPerWindow = 256.0;

}  // namespace

GrowthWarning::GrowthWarning(Rate rate) : rate_(rate) {}

std::optional<GrowthWarning::Warning> GrowthWarning::add(double at, std::uint64_t bytes) {
  if (!lows_.empty() && at < lows_.back().from) {
    lows_.clear();  // time went backwards: another clock, another window
  }
  // The last sample is kept however old it is: a window may be shorter than the time between two.
  while (lows_.size() > 1 && lows_.front().at < at - rate_.per) {
    lows_.pop_front();
  }
  if (lows_.empty() || at - lows_.back().from >= rate_.per / kStretchesPerWindow) {
    lows_.push_back({at, at, bytes});
  } else if (bytes <= lows_.back().bytes) {
    lows_.back().at = at;
    lows_.back().bytes = bytes;
  }
  const Low* lowest = &lows_.front();
  for (const Low& low : lows_) {
    if (low.bytes <= lowest->bytes) {
      lowest = &low;
    }
  }
  const std::uint64_t growth = bytes - lowest->bytes;
  const double over = at - lowest->at;
  const double windows = std::max(over / rate_.per, 1.0);
  if (growth == 0 || static_cast<double>(growth) < rate_.bytes * windows) {
    return std::nullopt;
  }
  const Warning warning{growth, over};
  lows_.clear();
  lows_.push_back({at, at, bytes});
  return warning;
}

Rate default_growth_rate(std::uint64_t limit_bytes) {
  return {0.05 * static_cast<double>(limit_bytes), RateUnit::kSecond, 60.0};
}

}  // namespace tidemark::monitor
