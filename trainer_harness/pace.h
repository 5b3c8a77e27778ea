// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "trainer_harness/trainer.h"

namespace tidemark::harness {

// Gives every step (and every batch of an evaluation) the same length, so that what a run does per
// second is known. The end of one is the start of the next; work that took longer than its time
// moves all that follow.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Pace(double step_time_s) : step_time_s_(step_time_s) {}

  // Sleeps until the time of the current step is over, or until the observer says stop.
  void wait(TrainerObserver& observer);
  double seconds() const {  // since the first step began
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  double step_time_s_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point deadline_ = start_;
};

}  // namespace tidemark::harness
