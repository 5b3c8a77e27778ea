// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/json_writer.h"
#include "common/text.h"
#include "tracker/causes/suspects.h"

// The usual suspects of a training job that grows, in words. All of it is escaped.
namespace tidemark::report {

// "dataset loading", "tokenizer and processor caches", ...
std::string_view suspect_text(tracker::Suspect suspect);
// Why: "`__main__.dataset` held 210 MiB at all 3 looks".
std::string suspect_reason_text(const tracker::SuspectRow& row);

// A line for each of them, or more where it is too narrow; what it is comes first.
std::string suspects_table(const tracker::SuspectRows& rows, std::size_t columns = kLineColumns);
// "optimizer state (8.00 MiB, constant), compile workers (none)": those that it is not; "": there
// are none.
std::string excluded_suspects_text(const tracker::SuspectRows& rows);
// "metrics lists, collator": those of which it cannot be told.
std::string open_suspects_text(const tracker::SuspectRows& rows);

// "suspects":[...], as docs/output.md has it.
void add_suspects(JsonWriter& json, const tracker::SuspectRows& rows);

}  // namespace tidemark::report
