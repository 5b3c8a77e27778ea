// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "common/json_writer.h"
#include "common/records.h"

// The lines of the JSON stream that `monitor --json` and `export --format jsonl` share; each call
// appends one object. docs/output.md describes every field.
namespace tidemark::cli {

inline constexpr int kJsonSchema = 1;

// Finds what is known of a process; nullptr when nothing is.
using ProcessLookup = std::function<const ProcessRecord*(const ProcessKey&)>;

// `time_is_steps` as in RunInfo: such a run has no seconds, its t_s is null.
void append_tick_json(JsonWriter& json, const Tick& tick, const ProcessLookup& lookup,
                      bool time_is_steps = false);
void append_event_json(JsonWriter& json, const EventRecord& event);

// Whether the sums of the tick may call a figure their footprint. Imported figures often have no
// parts of it; then the sums hold the best figure there is, which is none.
bool has_footprint(const Tick& tick);

}  // namespace tidemark::cli
