// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/process_table.h"
#include "common/records.h"
#include "common/run_summary.h"

namespace tidemark::report {

// The JSON lines of `monitor --json` and `export --format jsonl`, schema 1; docs/output.md lists
// every field. Sizes in bytes, times in seconds, unknown is null. Without the line end.
// `time_is_steps` as in RunInfo: such a run has no seconds.
std::string run_json(const RunInfo& info);
std::string tick_json(const Tick& tick, const ProcessLookup& lookup, bool time_is_steps = false);
std::string event_json(const EventRecord& event, const ProcessLookup& lookup,
                       bool time_is_steps = false);
std::string summary_json(const RunSummary& summary, bool time_is_steps = false);

// The text of an exported CSV file; our own importer reads it back. `time_is_steps` as in RunInfo:
// such a run has no column t_s.
std::string csv_header(bool time_is_steps);

// One row for each process, each role and the tree. Unknown is an empty field.
void append_tick_csv(std::string& out, const Tick& tick, const ProcessLookup& lookup,
                     bool time_is_steps);

}  // namespace tidemark::report
