// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/shm_growth.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "common/process_key.h"
#include "monitor/procfs/shm_makers.h"
#include "monitor/procfs/shm_pass.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::collect {

bool ShmGrowth::sample(const std::unordered_set<pid_t>& pids,
                       const std::unordered_set<ino_t>& segments) {
  std::vector<ProcessKey> job;
  job.reserve(pids.size());
  for (const pid_t pid : pids) {
    job.push_back({pid, 0});
  }
  monitor::ShmMakers makers("/proc");
  makers.set_running(job);
  monitor::ShmPass pass(directory_, "/proc", ::geteuid(), &makers);
  while (!pass.step()) {
  }
  if (!pass.readable()) {
    return false;
  }
  if (!has_sampled_) {
    has_sampled_ = true;
    for (const monitor::ShmSegment& segment : pass.segments()) {
      at_first_[segment.inode] = segment.allocated_bytes;
    }
    return false;
  }
  ShmGrowthReport now;
  for (const monitor::ShmSegment& segment : pass.segments()) {
    if (segment.is_of_job || segments.contains(segment.inode)) {
      of_job_.insert(segment.inode);
    }
    const auto before = at_first_.find(segment.inode);
    const std::uint64_t first = before == at_first_.end() ? 0 : before->second;
    const bool is_a_trace = segment.path.ends_with(wire::kTraceSuffix);  // of another run of ours
    if (segment.allocated_bytes > first && !is_a_trace) {
      const std::uint64_t grown = segment.allocated_bytes - first;
      now.grown_bytes += grown;
      ++now.segments;
      now.largest.push_back({segment.path, segment.allocated_bytes, grown, segment.held,
                             segment.owner_pid, of_job_.contains(segment.inode)});
    }
  }
  std::sort(
      now.largest.begin(), now.largest.end(), [](const GrowingSegment& a, const GrowingSegment& b) {
        return a.grown_bytes != b.grown_bytes ? a.grown_bytes > b.grown_bytes : a.path < b.path;
      });
  if (made_by(now, pids).grown_bytes > made_by(most_, pids).grown_bytes) {
    most_ = std::move(now);
  }
  // Also when it is only now that we know whose they are.
  const std::uint64_t own_bytes = made_by(most_, pids).grown_bytes;
  const bool is_more = own_bytes > told_bytes_;
  told_bytes_ = std::max(told_bytes_, own_bytes);
  return is_more;
}

ShmGrowthReport made_by(const ShmGrowthReport& all, const std::unordered_set<pid_t>& pids) {
  constexpr std::size_t kMostNamed = 100;
  ShmGrowthReport own;
  for (const GrowingSegment& segment : all.largest) {
    if (!segment.is_of_job && !(segment.maker && pids.contains(*segment.maker))) {
      continue;
    }
    own.grown_bytes += segment.grown_bytes;
    ++own.segments;
    if (own.largest.size() < kMostNamed) {
      own.largest.push_back(segment);
    }
  }
  return own;
}

}  // namespace tidemark::collect
