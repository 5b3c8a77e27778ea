// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "monitor/procfs/process_source.h"

namespace tidemark::tests {

// One line of a process table.
inline monitor::ProcessEntry row(pid_t pid, pid_t ppid, std::uint64_t start_ticks,
                                 pid_t process_group = 0) {
  monitor::ProcessEntry entry;
  entry.key = {pid, start_ticks};
  entry.ppid = ppid;
  entry.process_group = process_group == 0 ? 1 : process_group;
  entry.state = 'S';
  entry.threads = 1;
  entry.comm = "p" + std::to_string(pid);
  return entry;
}

// A process table that the test writes.
class FakeProcessSource final : public monitor::ProcessSource {
 public:
  std::vector<monitor::ProcessEntry> table;
  int snapshots = 0;
  std::function<void()> on_snapshot = [] {};
  bool is_unreadable = false;

  Result<std::vector<monitor::ProcessEntry>> snapshot() override {
    ++snapshots;
    on_snapshot();
    if (is_unreadable) {
      return Error{Errc::kIo, "the process table cannot be read"};
    }
    return table;
  }
};

}  // namespace tidemark::tests
