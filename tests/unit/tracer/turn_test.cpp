// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tidemark::tracer {
namespace {

// Takes the turn in a thread of its own, and keeps it.
class Holder {
 public:
  Holder(TurnFlag& flag, std::chrono::milliseconds time)
      : thread_([this, &flag, time] {
          const Turn turn(flag, Turn::Wait::kNo);
          has_it_ = true;
          std::this_thread::sleep_for(time);
        }) {
    while (!has_it_) {
      std::this_thread::yield();
    }
  }
  ~Holder() { thread_.join(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  std::atomic<bool> has_it_ = false;
  std::thread thread_;
};

TEST(Turn, ComesThoughTheOtherThreadHasLostItsProcessor) {
  TurnFlag flag;
  const Holder holder(flag, std::chrono::milliseconds(20));

  EXPECT_TRUE(Turn(flag, Turn::Wait::kYes));
}

TEST(Turn, DoesNotComeWithoutWaiting) {
  TurnFlag flag;
  const Holder holder(flag, std::chrono::milliseconds(20));

  EXPECT_FALSE(Turn(flag, Turn::Wait::kNo));
}

TEST(Turn, IsGivenUpWhenTheOtherThreadNeverEnds) {
  TurnFlag flag;
  const Turn mine(flag, Turn::Wait::kNo);

  EXPECT_FALSE(Turn(flag, Turn::Wait::kYes));
  EXPECT_TRUE(mine);
}

TEST(Patience, EndsAlsoWhereNoCallMayBeMade) {
  sys::g_silent = sys::kOwnFilter;
  Patience patience;
  int waits = 0;
  while (patience.wait()) {
    ++waits;
  }
  sys::g_silent = 0;

  EXPECT_GT(waits, 1'000);
}

}  // namespace
}  // namespace tidemark::tracer
