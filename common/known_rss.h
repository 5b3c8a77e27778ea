// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace tidemark
