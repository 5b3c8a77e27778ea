// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/process_lookup.h"
#include "common/records.h"

namespace tidemark::cli {

// The tree as it stands: one row per process with its role, children below their parents. Workers
// that are all alike (same parent, role and command, no children) share two rows.
std::string tree_text(const Tick& tick, const ProcessLookup& lookup);

}  // namespace tidemark::cli
