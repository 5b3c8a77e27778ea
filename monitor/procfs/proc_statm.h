// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

// /proc/PID/statm, as far as we use it: a tenth of the price of status. All zero for what has no
// memory: zombies, exiting processes, kernel threads.
struct StatmFields {
  std::uint64_t size_pages = 0;
  std::uint64_t resident_pages = 0;
  std::uint64_t shared_pages = 0;  // of the resident ones: of files and shared memory

  bool operator==(const StatmFields&) const = default;
};

Result<StatmFields> parse_statm(std::string_view text);

}  // namespace tidemark::monitor
