// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/tick_json.h"
#include "common/records.h"

namespace tidemark::cli {

// The header of an exported CSV file; our own importer reads it back.
std::string_view csv_header();

// One row for each process, each role and the tree. Unknown is an empty field.
void append_tick_csv(std::string& out, const Tick& tick, const ProcessLookup& lookup);

}  // namespace tidemark::cli
