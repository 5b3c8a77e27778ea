// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/result.h"
#include "monitor/procfs/process_source.h"
#include "monitor/roles/finder.h"

namespace tidemark::live {

struct FindOptions {
  bool json = false;
  bool all = false;  // also candidates with weak evidence
  bool no_redact = false;
};

// `tidemark find`: prints which process is the training job, and why. kExitTarget when there is
// none, or when several look equally good.
int run_find(const FindOptions& options);

// What `tidemark find` prints on stdout. The text is empty when there is nothing to show; the JSON
// is one line (docs/output.md).
std::string find_text(const monitor::FindResult& result, const FindOptions& options);
std::string find_json(const monitor::FindResult& result, const FindOptions& options);

// Who trains here, by everything that this user may see: what `find` and `monitor --find-training`
// go by.
Result<monitor::FindResult> look_for_training(monitor::ProcessSource& source,
                                              const std::string& proc_root = "/proc");
// "2 compile workers, 1 DataLoader worker".
std::string workers_text(const monitor::Candidate& candidate);
// "--pid 12 --pid 13".
std::string pid_options(const std::vector<pid_t>& pids);
// "tidemark: error: ...", a line for each detail, and the hint.
std::string no_pick_text(const monitor::NoPick& no_pick);

}  // namespace tidemark::live
