// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/bounded_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tidemark::tracer {
namespace {

using Wait = BoundedLockGuard::Wait;

// Takes the lock in a thread of its own and holds it for a while.
class Holder {
 public:
  Holder(BoundedLock& lock, std::chrono::milliseconds time)
      : thread_([this, &lock, time] {
          const BoundedLockGuard guard(lock, Wait::kTryOnce);
          holds_ = true;
          std::this_thread::sleep_for(time);
        }) {
    while (!holds_) {
      std::this_thread::yield();
    }
  }
  ~Holder() { thread_.join(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  std::atomic<bool> holds_ = false;
  std::thread thread_;
};

TEST(BoundedLock, IsTakenOnceItsHolderThatSleepsReleasesIt) {
  BoundedLock lock;
  const Holder holder(lock, std::chrono::milliseconds(20));

  EXPECT_TRUE(BoundedLockGuard(lock, Wait::kBounded));
}

TEST(BoundedLock, IsNotTakenWithoutWaiting) {
  BoundedLock lock;
  const Holder holder(lock, std::chrono::milliseconds(20));

  EXPECT_FALSE(BoundedLockGuard(lock, Wait::kTryOnce));
}

TEST(BoundedLock, IsGivenUpWhenItsHolderNeverReleasesIt) {
  BoundedLock lock;
  const BoundedLockGuard held(lock, Wait::kTryOnce);

  EXPECT_FALSE(BoundedLockGuard(lock, Wait::kBounded));
  EXPECT_TRUE(held);
}

TEST(BoundedWait, EndsAlsoWhereSystemCallsAreStopped) {
  sys::g_calls_stopped = sys::kOwnFilter;
  BoundedWait wait;
  int waits = 0;
  while (wait.keep_waiting()) {
    ++waits;
  }
  sys::g_calls_stopped = 0;

  EXPECT_GT(waits, 1'000);
}

}  // namespace
}  // namespace tidemark::tracer
