// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "recording/import/text_input.h"
#include "recording/reader.h"

namespace tidemark::recording {

// The .dat files of memory_profiler's `mprof run`: "MEM mib t", with -M "CHLD n mib t" for each
// child, "FUNC name mib t mib t" for functions that it watched.
std::unique_ptr<RecordingReader> open_mprof(TextInput input);
bool looks_like_mprof(std::string_view head);

// The plain logs of psrecord: "# Elapsed time   CPU (%)   Real (MB)   Virtual (MB)" and rows of
// numbers. Its MB are MiB. (Its CSV logs are CSV.)
Result<std::unique_ptr<RecordingReader>> open_psrecord(TextInput input);
bool looks_like_psrecord(std::string_view head);

}  // namespace tidemark::recording
