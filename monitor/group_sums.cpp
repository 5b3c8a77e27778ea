// SPDX-License-Identifier: Apache-2.0
#include "monitor/group_sums.h"

#include <cstddef>

#include "monitor/watched_process.h"

namespace tidemark::monitor {

void GroupSums::add(const WatchedProcess& watched, const ProcessSample& sample) {
  const auto role = static_cast<std::size_t>(watched.record.role);
  GroupSample& group = roles_[role];
  ++group.processes;
  group.rss_bytes += sample.rss_bytes.value_or(0);
  group.swap_bytes += sample.swap_bytes.value_or(0);
  group.pss_bytes = group.pss_bytes.value_or(0) + sample.pss_bytes.value_or(0);
  without_pss_[role] += watched.has_memory && !sample.pss_bytes ? 1U : 0U;
  group.unreadable += watched.pss_refused ? 1U : 0U;
}

void GroupSums::finish(const FootprintLedger::Totals& footprints, Tick& tick) const {
  tick.tree.pss_bytes = 0;
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    GroupSample group = roles_[i];
    if (group.processes == 0) {
      continue;
    }
    if (without_pss_[i] > 0) {
      group.pss_bytes.reset();
    }
    group.footprint_bytes = footprints.roles[i].bytes;
    group.footprint_held = footprints.roles[i].held;
    tick.tree.processes += group.processes;
    tick.tree.rss_bytes += group.rss_bytes;
    tick.tree.swap_bytes += group.swap_bytes;
    tick.tree.unreadable += group.unreadable;
    if (tick.tree.pss_bytes && group.pss_bytes) {
      *tick.tree.pss_bytes += *group.pss_bytes;
    } else {
      tick.tree.pss_bytes.reset();
    }
    tick.roles.push_back({static_cast<Role>(i), group});
  }
  tick.tree.footprint_bytes = footprints.tree.bytes;
  tick.tree.footprint_held = footprints.tree.held;
}

}  // namespace tidemark::monitor
