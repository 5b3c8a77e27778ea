// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

// The name of a stage or mode as the command line writes it: "recording", "sampled".
const char* stage_name(wire::Stage stage);
const char* mode_name(wire::Mode mode);

// One text line per fact, for people and golden files: the process, each loss that is not 0, each
// module, each site, each live site. Strange bytes are escaped; numbers are in bytes.
std::string dump_text(const TraceSnapshot& snapshot, const std::vector<TraceModule>& modules);
std::string dump_text(const LiveScan& scan);

}  // namespace tidemark::reader
