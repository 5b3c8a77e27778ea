// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/tracer/sys.h"

namespace tidemark::tracer {

// Keeps all signals from this thread, those of pthread_cancel too: what is begun in here is ended,
// and neither longjmp nor a fork in a handler comes in between.
class NoSignals {
 public:
  NoSignals() noexcept
      : blocked_(sys::own(SYS_rt_sigprocmask, 0, sys::word(&kAll), sys::word(&old_), 8) == 0) {}
  ~NoSignals() {
    if (blocked_) {
      sys::call(SYS_rt_sigprocmask, 2, sys::word(&old_), 0, 8);
    }
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  std::uint64_t old_ = 0;
  bool blocked_;
};

// How a thread waits for another one, whose work takes some 100 us: it yields, and when the other
// seems to have lost its processor it naps, for some 100 ms in all.
class Patience {
 public:
  // False: it has waited long enough.
  bool wait() noexcept {
    if (waits_ == kMostWaits) {
      return false;
    }
    if (waits_++ < kYields) {
      sys::yield();
    } else {
      sys::nap();
    }
    return true;
  }

 private:
  static constexpr int kYields = 200;
  static constexpr int kMostWaits = 1200;
  int waits_ = 0;
};

// One thread at a time, for work that is rare and short. A thread that does not get its turn within
// a bounded time goes without.
class TurnFlag {
 public:
  bool taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
  void clear() noexcept { taken_.store(false, std::memory_order_relaxed); }  // in a forked child

 private:
  friend class Turn;
  std::atomic<bool> taken_ = false;
};

class Turn {
 public:
  enum class Wait { kNo, kYes };

  Turn(TurnFlag& flag, Wait wait) noexcept : flag_(flag) {
    Patience patience;
    do {
      mine_ = !flag_.taken_.exchange(true, std::memory_order_acquire);
    } while (!mine_ && wait == Wait::kYes && patience.wait());
  }
  ~Turn() {
    if (mine_) {
      flag_.taken_.store(false, std::memory_order_release);
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const noexcept { return mine_; }

 private:
  NoSignals quiet_;  // given up last
  TurnFlag& flag_;
  bool mine_ = false;
};

}  // namespace tidemark::tracer
