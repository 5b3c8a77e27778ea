// SPDX-License-Identifier: Apache-2.0
#include "cli/shm_growth.h"

#include <unistd.h>

#include <algorithm>

#include "monitor/shm_pass.h"

namespace tidemark::cli {

void ShmGrowth::look() {
  monitor::ShmPass pass(directory_, "/proc", ::geteuid());
  while (!pass.step()) {
  }
  if (!pass.readable()) {
    return;
  }
  if (!has_looked_) {
    has_looked_ = true;
    for (const monitor::ShmSegment& segment : pass.segments()) {
      at_first_[segment.inode] = segment.allocated_bytes;
    }
    return;
  }
  ShmGrowthReport now;
  for (const monitor::ShmSegment& segment : pass.segments()) {
    const auto before = at_first_.find(segment.inode);
    const std::uint64_t first = before == at_first_.end() ? 0 : before->second;
    const bool is_ours = segment.path.starts_with("tidemark-");  // of another run
    if (segment.allocated_bytes > first && !is_ours) {
      const std::uint64_t grown = segment.allocated_bytes - first;
      now.grown_bytes += grown;
      ++now.segments;
      now.largest.push_back({segment.path, segment.allocated_bytes, grown, segment.held});
    }
  }
  std::sort(
      now.largest.begin(), now.largest.end(), [](const GrowingSegment& a, const GrowingSegment& b) {
        return a.grown_bytes != b.grown_bytes ? a.grown_bytes > b.grown_bytes : a.path < b.path;
      });
  now.largest.resize(std::min(now.largest.size(), kMostNamed));
  if (now.grown_bytes >= most_.grown_bytes) {
    most_ = std::move(now);
  }
}

}  // namespace tidemark::cli
