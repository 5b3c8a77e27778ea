// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tracker/curve/reading.h"

namespace tidemark::tracker {

// How long an epoch is, from the markers at which epochs begin: the median distance.
class EpochLength {
 public:
  // Several processes may mark the same epoch: only the first of them counts.
  void mark(std::int64_t epoch, const Moment& at);

  std::optional<double> seconds() const { return median(seconds_); }
  std::optional<double> steps() const { return median(steps_); }

 private:
  static constexpr std::size_t kMost = 1024;  // distances; by then the median is known
  static std::optional<double> median(std::vector<double> distances);

  std::optional<std::int64_t> last_;
  Moment last_at_;
  std::vector<double> seconds_;
  std::vector<double> steps_;
};

}  // namespace tidemark::tracker
