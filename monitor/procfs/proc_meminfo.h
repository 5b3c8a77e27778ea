// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark::monitor {

// /proc/meminfo, as far as we use it. Lines that are missing stay unknown.
struct MeminfoFields {
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> swap_total_bytes;
  std::optional<std::uint64_t> swap_free_bytes;
  std::optional<std::uint64_t> shmem_bytes;
};
MeminfoFields parse_meminfo(std::string_view text);

// /proc/pressure/memory or a control group's memory.pressure: percent of the last 10 s.
struct PressureFields {
  std::optional<double> some_avg10;
  std::optional<double> full_avg10;
};
PressureFields parse_pressure(std::string_view text);

}  // namespace tidemark::monitor
