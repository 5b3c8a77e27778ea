// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/records.h"

namespace tidemark {

// Imported runs may have no RSS, and a sum of nothing is 0: nobody who holds memory has none of it
// in RAM.
inline std::optional<std::uint64_t> known_rss_bytes(const GroupSample& sum) {
  const bool is_missing =
      sum.rss_bytes == 0 && sum.processes > 0 && sum.footprint_bytes.value_or(1) > 0;
  return is_missing ? std::nullopt : std::optional(sum.rss_bytes);
}

// Swap of `sum`, a group of `tick`: likewise unknown where no process says how much it has.
inline std::optional<std::uint64_t> known_swap_bytes(const Tick& tick, const GroupSample& sum) {
  const bool is_told = std::any_of(tick.processes.begin(), tick.processes.end(),
                                   [](const ProcessSample& s) { return s.swap_bytes.has_value(); });
  const bool is_missing = sum.swap_bytes == 0 && !is_told && !tick.processes.empty() &&
                          sum.footprint_bytes.value_or(1) > 0;
  return is_missing ? std::nullopt : std::optional(sum.swap_bytes);
}

}  // namespace tidemark
