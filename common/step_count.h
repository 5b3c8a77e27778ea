// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace tidemark {

// Counts steps through restarts: many jobs number their steps anew in every epoch.
class StepCount {
 public:
  // The step as the job numbers it; returns the number of steps since the first one that we saw.
  std::int64_t add(std::int64_t step) {
    if (last_ && step < *last_) {
      before_ += *last_ - step + 1;  // 1..6, 1: the second 1 is one step after the 6
    }
    first_ = first_.value_or(step);
    last_ = step;
    return before_ + step - *first_;
  }
  // The same, numbered on from the first step as the job numbers it.
  std::int64_t add_numbered(std::int64_t step) {
    const std::int64_t since_first = add(step);
    return since_first + *first_;
  }

 private:
  std::optional<std::int64_t> first_;
  std::optional<std::int64_t> last_;
  std::int64_t before_ = 0;
};

}  // namespace tidemark
