// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "recording/import/text_input.h"
#include "recording/reader.h"

namespace tidemark::recording {

// CSV with a header line; docs/run-file.md says which columns and how odd rows are treated. Fails
// when the header has no time or no memory column.
Result<std::unique_ptr<RecordingReader>> open_csv(TextInput input);

}  // namespace tidemark::recording
