// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/result.h"
#include "profiler/reader/trace_file.h"
#include "profiler/reader/trace_image.h"
#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

// One scan of the live table and the ranges, as TraceFile::live_blocks() promises.
LiveScan scan_live_blocks(int fd, const TraceHeader& header, const LiveScanOptions& options);

}  // namespace tidemark::reader
