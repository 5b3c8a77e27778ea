// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidemark {

// Where time comes from: the kernel in the tool, a hand-turned clock in tests.
class Clock {
 public:
  virtual ~Clock() = default;
  // CLOCK_MONOTONIC: the time base of samples and markers.
  virtual std::int64_t monotonic_ns() const = 0;
  // CLOCK_REALTIME: for people ("started at").
  virtual std::int64_t wall_ns() const = 0;
  // CLOCK_BOOTTIME: since boot, suspended or not, as the kernel counts when a process started.
  virtual std::int64_t boot_ns() const = 0;
};

class SystemClock final : public Clock {
 public:
  std::int64_t monotonic_ns() const override;
  std::int64_t wall_ns() const override;
  std::int64_t boot_ns() const override;
};

// CPU time that the calling thread has used: what a budget or a benchmark charges.
std::int64_t thread_cpu_ns();

inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;
inline constexpr double to_seconds(std::int64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(kNsPerSecond);
}

}  // namespace tidemark
