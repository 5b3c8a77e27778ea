// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/process_table.h"
#include "common/records.h"

namespace tidemark::report {

// The tree as it stands: one row per process with its role, children below their parents. Workers
// that are all alike (same parent, role and command, no children) share two rows.
std::string tree_text(const Tick& tick, const ProcessLookup& lookup);

}  // namespace tidemark::report
