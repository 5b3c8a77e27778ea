// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace tidemark::monitor {

// How to look for new processes at this tick.
enum class Look {
  kNothing,   // the kernel has handed out no pid since the last look
  kChildren,  // ask the members for their children: cheap, finds all but what was orphaned at once
  kTable,     // read the whole process table
};

// Decides between them. A process table costs a scan of /proc, so it is read at most every 2 s and
// for at most 1 % of the time; asking for children costs a file per thread, so it is done for at
// most 0.5 % of the time, but every 2 s in any case. Costs are CPU time: waiting for a processor is
// no cost. The kernel's last pid (/proc/loadavg) says when there is nothing to look for. Pure.
class DiscoveryPlan {
 public:
  // `last_pid` is nullopt when it cannot be read: then there may always be something new.
  Look next(std::int64_t now_ns, std::optional<std::uint64_t> last_pid);
  void table_read(std::int64_t now_ns, std::int64_t cost_ns);
  // It is still due, but not at once.
  void table_unreadable(std::int64_t now_ns) { next_table_ns_ = now_ns + kTableEveryNs; }
  void children_read(std::int64_t now_ns, std::int64_t cost_ns);
  // The kernel lists no children (CONFIG_PROC_CHILDREN is off): tables only.
  void children_unsupported() { children_supported_ = false; }

  static constexpr std::int64_t kTableEveryNs = 2 * kNsPerSecond;

 private:
  bool children_supported_ = true;
  std::int64_t next_table_ns_ = 0;
  std::int64_t next_children_ns_ = 0;
  bool table_is_due_ = true;  // pids were handed out since the last table
  bool children_are_due_ = true;
  std::optional<std::uint64_t> last_pid_;
};

}  // namespace tidemark::monitor
