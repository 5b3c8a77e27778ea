// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "profiler/reader/trace_values.h"

namespace tidemark::tests {

// One text line per fact, for people and golden files: the process, each loss that is not 0, each
// module, each site, each live site. Strange bytes are escaped; numbers are in bytes.
std::string dump_text(const reader::TraceSnapshot& snapshot,
                      const std::vector<reader::TraceModule>& modules);
std::string dump_text(const reader::LiveScan& scan);

}  // namespace tidemark::tests
