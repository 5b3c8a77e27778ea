// SPDX-License-Identifier: Apache-2.0
#include "common/clock.h"

#include <ctime>

namespace tidemark {
namespace {

std::int64_t now_ns(clockid_t clock) {
  timespec ts{};
  ::clock_gettime(clock, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * kNsPerSecond + ts.tv_nsec;
}

}  // namespace

std::int64_t SystemClock::monotonic_ns() const { return now_ns(CLOCK_MONOTONIC); }
std::int64_t SystemClock::wall_ns() const { return now_ns(CLOCK_REALTIME); }
std::int64_t SystemClock::boot_ns() const { return now_ns(CLOCK_BOOTTIME); }
std::int64_t thread_cpu_ns() { return now_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace tidemark
