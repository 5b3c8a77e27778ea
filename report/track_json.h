// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tracker/run/judged_run.h"

namespace tidemark::report {

// The answer of `track --json`, schema 1; docs/output.md lists every field. Sizes in bytes, times
// in seconds, unknown is null. Without the line end.
std::string track_json(const tracker::JudgedRun& result);

}  // namespace tidemark::report
