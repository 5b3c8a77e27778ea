// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "live/profile.h"
#include "live/watch_options.h"
#include "monitor/procfs/process_source.h"
#include "monitor/roles/roles.h"

namespace tidemark::live {

// Which processes of a job that runs already get the tracer.
struct AttachTargets {
  std::vector<pid_t> roots;   // of the job's tree
  std::vector<pid_t> wanted;  // not empty; the most important first
};

// The process that does the work of a tree: the process `root` itself, or what a shell or another
// wrapper runs. The error names the processes to choose from. Pure.
Result<pid_t> process_at_work(std::span<const monitor::ProcessFacts> table, pid_t root);

// The same of one of several processes that were named: none of a shell that runs several jobs, of
// which others were named. Pure.
Result<std::vector<pid_t>> processes_at_work(std::span<const monitor::ProcessFacts> table,
                                             pid_t root, std::span<const pid_t> named);

// Looks at the machine. The error says what to try next.
Result<AttachTargets> attach_targets(const TargetOptions& target, const AttachScope& scope,
                                     monitor::ProcessSource& source);

// Whether a process with this role is wanted, when it is seen while the job is watched.
bool is_wanted(Role role, const AttachScope& scope);

}  // namespace tidemark::live
