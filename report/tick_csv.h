// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/process_table.h"
#include "common/records.h"

namespace tidemark::report {

// The text of an exported CSV file; our own importer reads it back. `time_is_steps` as in RunInfo:
// such a run has no column t_s.
std::string csv_header(bool time_is_steps);

// One row for each process, each role and the tree. Unknown is an empty field.
void append_tick_csv(std::string& out, const Tick& tick, const ProcessLookup& lookup,
                     bool time_is_steps);

}  // namespace tidemark::report
