// SPDX-License-Identifier: Apache-2.0
#include "monitor/discovery_plan.h"

#include <algorithm>

namespace tidemark::monitor {

Look DiscoveryPlan::next(std::int64_t now_ns, std::optional<std::uint64_t> last_pid) {
  const bool new_pids = !last_pid || last_pid != last_pid_;
  last_pid_ = last_pid;
  table_is_due_ = table_is_due_ || new_pids;
  children_are_due_ = children_are_due_ || new_pids;
  if (table_is_due_ && now_ns >= next_table_ns_) {
    return Look::kTable;
  }
  return children_are_due_ && children_supported_ && now_ns >= next_children_ns_ ? Look::kChildren
                                                                                 : Look::kNothing;
}

void DiscoveryPlan::children_read(std::int64_t now_ns, std::int64_t cost_ns) {
  children_are_due_ = false;
  next_children_ns_ = now_ns + std::min(kTableEveryNs, 200 * cost_ns);
}

void DiscoveryPlan::table_read(std::int64_t now_ns, std::int64_t cost_ns) {
  table_is_due_ = false;
  children_are_due_ = false;
  next_table_ns_ = now_ns + std::max(kTableEveryNs, 100 * cost_ns);
}

}  // namespace tidemark::monitor
