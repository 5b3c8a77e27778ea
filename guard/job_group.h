// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "common/fd.h"
#include "common/process_key.h"

namespace tidemark::guard {

// The control group (v2) that the members are in, when it is theirs alone: nobody else is in it,
// and no group is below it. Writing "1" to `kill` ends all who are in it by then, also what they
// fork meanwhile, and strangers who have come since: look at `procs` first.
struct JobGroup {
  Fd kill;   // cgroup.kill, open for writing; none: there is no such group
  Fd procs;  // cgroup.procs
};
// `root` is "" but for tests.
JobGroup open_job_group(const std::string& root, std::span<const ProcessKey> members);

}  // namespace tidemark::guard
