// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {

// `tidemark-harness train WORDS --truth FILE`, with the file in a private folder.
class HarnessRun {
 public:
  // `environment`: NAME=VALUE entries to add.
  explicit HarnessRun(const std::vector<std::string>& words,
                      const std::vector<std::string>& environment = {});

  Subprocess& process() { return process_; }
  // Waits for the line that says that training begins; false when it ended before.
  bool wait_for_training();
  // Everything is said and done: the exit code.
  int finish();
  // What the file says now; null when there is none.
  nlohmann::json truth() const;
  // The pids of a role, from the truth.
  std::vector<pid_t> pids(const std::string& role) const;
  std::string path(const std::string& name) const { return folder_.path(name); }

  // Own anonymous memory in MiB, every few milliseconds from the first step to the end of the
  // last; what the process frees while it ends is not in it.
  std::vector<double> anonymous_mib();

 private:
  TempTree folder_;
  Subprocess process_;
};

std::string harness_path();

// One number of /proc/PID/FILE ("status", "smaps_rollup"), in MiB; -1 when it is not there.
double proc_mib(pid_t pid, const std::string& file, const std::string& field);
// False also for a zombie.
bool is_running(pid_t pid);
// Waits, for at most a few seconds, until all have ended; those that have not.
std::vector<pid_t> still_running(std::vector<pid_t> pids);
// The segments of /dev/shm that a trainer has made.
std::vector<std::string> segments_of(pid_t pid);
// Waits, for at most a few seconds, until they are gone; those that are not.
std::vector<std::string> segments_left_by(pid_t pid);

}  // namespace tidemark::tests
