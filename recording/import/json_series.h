// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "recording/import/text_input.h"
#include "recording/reader.h"

namespace tidemark::recording {

// A JSON file of series: {"series": [{"id": .., "unit": "steps", "x": [..], "y_mb": [..]}, ..]}, a
// list of such, or one alone. Each series becomes a process of its own, named by its id; several
// are merged by x, which needs axes of one kind (time or steps). `id` picks one; empty: all.
Result<std::unique_ptr<RecordingReader>> open_json_series(TextInput input, const std::string& id);

}  // namespace tidemark::recording
