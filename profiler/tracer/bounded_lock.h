// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/tracer/sys.h"

namespace tidemark::tracer {

// Blocks all signals of this thread, those of pthread_cancel too: no handler can longjmp out of the
// scope or fork inside it.
class SignalBlocker {
 public:
  SignalBlocker() noexcept
      : blocked_(sys::call_if_allowed(SYS_rt_sigprocmask, 0, sys::word(&kAll), sys::word(&old_),
                                      8) == 0) {}
  ~SignalBlocker() {
    if (blocked_) {
      sys::call(SYS_rt_sigprocmask, 2, sys::word(&old_), 0, 8);
    }
  }
  SignalBlocker(const SignalBlocker&) = delete;
  SignalBlocker& operator=(const SignalBlocker&) = delete;

 private:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  std::uint64_t old_ = 0;
  bool blocked_;
};

// Waits for another thread whose work takes about 100 us: first yields, then, because the other has
// probably lost its processor, sleeps. About 100 ms in all.
class BoundedWait {
 public:
  // False: the time is up.
  bool keep_waiting() noexcept {
    if (waits_ == kMaxWaits) {
      return false;
    }
    if (waits_++ < kYields) {
      sys::yield();
    } else {
      sys::sleep_briefly();
    }
    return true;
  }

 private:
  static constexpr int kYields = 200;
  static constexpr int kMaxWaits = 1200;
  int waits_ = 0;
};

// A lock for rare and short work. Whoever does not get it within a bounded time does without.
class BoundedLock {
 public:
  void clear() noexcept { taken_.store(false, std::memory_order_relaxed); }  // in a forked child

 private:
  friend class BoundedLockGuard;
  std::atomic<bool> taken_ = false;
};

// Holds the lock, or not: ask operator bool. Signals are blocked meanwhile.
class BoundedLockGuard {
 public:
  enum class Wait { kTryOnce, kBounded };

  BoundedLockGuard(BoundedLock& lock, Wait wait) noexcept : lock_(lock) {
    BoundedWait time;
    do {
      held_ = !lock_.taken_.exchange(true, std::memory_order_acquire);
    } while (!held_ && wait == Wait::kBounded && time.keep_waiting());
  }
  ~BoundedLockGuard() {
    if (held_) {
      lock_.taken_.store(false, std::memory_order_release);
    }
  }
  BoundedLockGuard(const BoundedLockGuard&) = delete;
  BoundedLockGuard& operator=(const BoundedLockGuard&) = delete;
  explicit operator bool() const noexcept { return held_; }

 private:
  SignalBlocker blocker_;  // first, so that signals come back after the lock is released
  BoundedLock& lock_;
  bool held_ = false;
};

}  // namespace tidemark::tracer
