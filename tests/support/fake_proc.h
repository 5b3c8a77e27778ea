// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/process_rows.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {

// One process of a FakeProc; sizes in KiB, as the kernel writes them.
struct FakeProcess {
  pid_t pid = 0;
  pid_t ppid = 1;
  std::uint64_t start_ticks = 100;
  std::string comm = "python3";
  std::vector<std::string> argv{"python3", "train.py"};
  std::string exe = "/usr/bin/python3";
  std::string environ;               // as the file has it
  std::uint64_t stack_start = 1000;  // equal in parent and forked child
  std::uint64_t anon_kib = 0;
  std::uint64_t file_kib = 0;
  std::uint64_t shmem_kib = 0;
  std::uint64_t swap_kib = 0;
  std::uint64_t pss_anon_kib = 0;
  std::uint64_t private_dirty_kib = 0;
  char state = 'S';
  bool rollup_denied = false;
  bool split_unknown = false;  // before Linux 4.5
  bool status_malformed = false;
  bool statm_malformed = false;
  bool main_thread_ended = false;  // statm is empty, the other threads' status is not
};

// A folder that looks like /proc, and the process table that goes with it.
class FakeProc {
 public:
  FakeProc();

  std::string root() const { return tree_.path("proc"); }
  FakeProcessSource& source() { return source_; }
  // Adds it or writes its files anew.
  void put(const FakeProcess& process);
  // Ends it: out of the table, its folder removed.
  void end(pid_t pid);
  // What the kernel's last pid says; put() of a new process raises it.
  void set_last_pid(std::uint64_t pid);

 private:
  void write_children(pid_t parent) const;

  TempTree tree_;
  FakeProcessSource source_;
  std::vector<FakeProcess> processes_;
  std::uint64_t last_pid_ = 1;
};

}  // namespace tidemark::tests
