// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tidemark::reader {

// A stretch of a process's memory that stands for `weight` such stretches.
struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t size_bytes = 0;
  double weight = 1.0;
};

// How much of some memory is really there. Shares are of the weighted bytes, between 0 and 1.
struct Residency {
  double resident_share = 0.0;
  double swapped_share = 0.0;
  std::uint64_t pages = 0;            // that the ranges touch, each range for itself
  std::uint64_t pages_looked_at = 0;  // fewer than `pages`: the shares are estimated from a sample
};

struct ResidencyOptions {
  std::string proc = "/proc";
  std::uint64_t most_pages = std::uint64_t{1} << 20U;  // beyond this, evenly spaced pages are read,
                                                       // fewer where they lie far apart
};

// Looks the ranges up in /proc/PID/pagemap. nullopt when it cannot be read (no permission, the
// process is gone) or there is not one byte in the ranges; one that goes beyond the address space
// does not count. Reserved memory that was never touched is not resident. `pid` is the one in our
// namespace; that it is still the same process is the caller's business.
std::optional<Residency> residency_of(pid_t pid, std::span<const MemoryRange> ranges,
                                      const ResidencyOptions& options = {});

}  // namespace tidemark::reader
