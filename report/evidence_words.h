// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tracker/curve/series_verdict.h"

namespace tidemark::report {

// "warmup  step 10 to step 90: +12.0 GiB, 165 MiB/step".
std::string pattern_text(const tracker::Pattern& pattern, tracker::Axis axis);
// What was measured and what it was measured against.
std::string evidence_text(const tracker::Evidence& evidence, tracker::Axis axis);

}  // namespace tidemark::report
