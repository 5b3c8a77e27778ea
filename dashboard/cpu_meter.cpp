// SPDX-License-Identifier: Apache-2.0
#include "dashboard/cpu_meter.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::dashboard {

void CpuMeter::sample(const std::vector<ProcessKey>& keys, double now_s) {
  static const auto kTicksPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::unordered_map<ProcessKey, Seen> seen;
  CpuShares shares;
  for (const ProcessKey& key : keys) {
    const auto text = read_file(fmt::format("{}/{}/stat", proc_, key.pid));
    const auto stat = text ? monitor::parse_stat(*text) : std::nullopt;
    if (!stat || stat->start_ticks != key.start_ticks) {
      continue;  // gone, or another one
    }
    seen[key] = {now_s, stat->cpu_ticks};
    const auto before = seen_.find(key);
    if (before != seen_.end() && now_s > before->second.at_s &&
        stat->cpu_ticks >= before->second.cpu_ticks) {
      shares[key] = static_cast<double>(stat->cpu_ticks - before->second.cpu_ticks) /
                    kTicksPerSecond / (now_s - before->second.at_s);
    }
  }
  seen_ = std::move(seen);
  shares_ = std::move(shares);
}

}  // namespace tidemark::dashboard
