// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/pace.h"

#include <algorithm>
#include <thread>

namespace tidemark::harness {
namespace {

constexpr std::chrono::milliseconds kLongestSleep(100);  // until we ask the observer again

}  // namespace

void Pace::wait(TrainerObserver& observer) {
  deadline_ +=
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step_time_s_));
  deadline_ = std::max(deadline_, Clock::now());
  while (!observer.stop_requested()) {
    const auto left = deadline_ - Clock::now();
    if (left <= Clock::duration::zero()) {
      return;
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(left, kLongestSleep));
  }
}

}  // namespace tidemark::harness
