// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracker/curve/step_clock.h"

namespace tidemark::tracker {

// Which step a run was in at any time, in a bounded amount of memory. Markers come in the order of
// time.
class StepTimes {
 public:
  // A step marker as the job numbers it; numbers that start anew are counted on.
  void mark(double t_s, std::int64_t step);

  bool empty() const { return marks_.empty(); }
  double last_step() const { return clock_.last_step(); }

  // Between two markers in proportion to the time. kUnknown before the first one, and so long after
  // the last that it is not known whether there is training at all.
  double at(double t_s) const;

 private:
  static constexpr std::size_t kMostMarks = 2048;

  struct Mark {
    double t_s;
    double step;
  };
  StepClock clock_;
  std::vector<Mark> marks_;  // when there are too many, every second one goes
  std::size_t skip_ = 1;     // markers that come for one that is kept
  std::size_t skipped_ = 0;
};

}  // namespace tidemark::tracker
