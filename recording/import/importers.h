// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "recording/import/text_input.h"
#include "recording/reader.h"

namespace tidemark::recording {

// CSV with a header line; docs/run-file.md says which columns and how odd rows are treated. Fails
// when the header has no time or no memory column.
Result<std::unique_ptr<RecordingReader>> open_csv(TextInput input);

// The .dat files of memory_profiler's `mprof run`: "MEM mib t", with -M "CHLD n mib t" for each
// child, "FUNC name mib t mib t" for functions that it watched.
std::unique_ptr<RecordingReader> open_mprof(TextInput input);
bool looks_like_mprof(std::string_view head);

// The plain logs of psrecord: "# Elapsed time   CPU (%)   Real (MB)   Virtual (MB)" and rows of
// numbers. Its MB are MiB. (Its CSV logs are CSV.)
Result<std::unique_ptr<RecordingReader>> open_psrecord(TextInput input);
bool looks_like_psrecord(std::string_view head);

// One series of the file, as numbers; what is not a number is nullopt.
struct JsonSeries {
  std::string id;
  bool is_steps = false;
  std::vector<std::optional<double>> x;        // seconds or steps
  std::vector<std::optional<double>> y_bytes;  // as many as x
  std::string metric;                          // in words
};

// `file` is its name in errors. Nothing of the JSON library gets out of the .cpp.
Result<std::vector<JsonSeries>> parse_json_series(std::string_view text, const std::string& file);

// A JSON file of series: {"series": [{"id": .., "unit": "steps", "x": [..], "y_mb": [..]}, ..]}, a
// list of such, or one alone. Each series becomes a process of its own, named by its id; several
// are merged by x, which needs axes of one kind (time or steps). `id` picks one; empty: all.
Result<std::unique_ptr<RecordingReader>> open_json_series(TextInput input, const std::string& id);

}  // namespace tidemark::recording
