// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "recording/reader.h"

namespace tidemark::report {

// What a reader of the result should know about the recording, a line each.
std::vector<std::string> read_notes(const recording::ReadSummary& summary);
// Says it on stderr.
void print_read_notes(const recording::ReadSummary& summary);

}  // namespace tidemark::report
