// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "recording/reader.h"

namespace tidemark::recording {

// Opens a recording of any kind that we read: a run file, CSV, an mprof .dat file, a psrecord log
// or JSON series ("FILE#ID" picks one of them). The content decides which, not the name. "-" is the
// standard input.
Result<std::unique_ptr<RecordingReader>> open_recording(const std::string& path);

// Whether it is a run file in which read_tree_window() can read. Do not call it on a file that this
// process records: see there.
bool is_run_file(const std::string& path);

}  // namespace tidemark::recording
