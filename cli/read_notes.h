// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "recording/reader.h"

namespace tidemark::cli {

// Says on stderr what a reader of the result should know about the recording.
void print_read_notes(const recording::ReadSummary& summary);

}  // namespace tidemark::cli
