// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/records.h"

namespace tidemark::tests {

inline constexpr int kNumberedProcesses = 5;

// Tick number `n` of a run of five processes, all of whose values follow from `n`: whoever reads it
// back can tell whether it is complete. Each tick also has a marker.
inline Tick numbered_tick(std::uint64_t n) {
  Tick tick;
  tick.t_s = static_cast<double>(n);
  tick.step = static_cast<std::int64_t>(n);
  for (int i = 0; i < kNumberedProcesses; ++i) {
    ProcessSample sample;
    sample.key = {100 + i, 7};
    sample.rss_bytes = n * 1000 + static_cast<std::uint64_t>(i);
    sample.rss_anon_bytes = n;
    sample.rss_shmem_bytes = 0;
    sample.state = 'S';
    if (n == 0) {
      ProcessRecord process;
      process.key = sample.key;
      process.comm = "worker";
      tick.new_processes.push_back(process);
    }
    tick.processes.push_back(sample);
    tick.tree.rss_bytes += *sample.rss_bytes;
    tick.tree.footprint_bytes += n;
    ++tick.tree.processes;
  }
  tick.markers = {{tick.t_s, {}, MarkerKind::kStep, *tick.step, ""}};
  return tick;
}

}  // namespace tidemark::tests
