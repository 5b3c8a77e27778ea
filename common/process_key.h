// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tidemark {

// Who a process is. Pids are reused; (pid, start time) is not.
struct ProcessKey {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat: clock ticks since boot

  // clang-tidy 14 takes the 0 inside the generated code for a null pointer.
  auto operator<=>(const ProcessKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace tidemark

template <>
struct std::hash<tidemark::ProcessKey> {
  std::size_t operator()(const tidemark::ProcessKey& key) const noexcept {
    // Fibonacci hashing: pids and start times are small, dense numbers.
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
    return static_cast<std::size_t>((static_cast<std::uint32_t>(key.pid) * kGolden) ^
                                    key.start_ticks);
  }
};
