// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "common/fd.h"
#include "common/process_key.h"

namespace tidemark::guard {

// cgroup.kill of the control group (v2) that the members are in, open for writing, when that group
// is theirs alone: nobody else is in it, and no group is below it. Writing "1" to it ends them all
// at once, whoever they fork meanwhile. Otherwise no descriptor. `root` is "" but for tests.
Fd open_group_kill(const std::string& root, std::span<const ProcessKey> members);

}  // namespace tidemark::guard
