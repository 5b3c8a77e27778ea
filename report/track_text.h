// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/json_writer.h"
#include "report/chart_text.h"
#include "report/track_words.h"
#include "tracker/causes/advice.h"
#include "tracker/owners/last_look.h"
#include "tracker/run/judged_run.h"

namespace tidemark::report {

// The answer for people: one sentence, a chart, the numbers, what it rests on, what to do, what
// was not seen, and the next command. Lines of at most 80 columns, no colour, every name escaped.
std::string track_text(const tracker::JudgedRun& result, Glyphs glyphs,
                       const JudgedTarget& target = {});

// "warmup  step 10 to step 90: +12.0 GiB, 165 MiB/step".
std::string pattern_text(const tracker::Pattern& pattern, tracker::Axis axis);
// What was measured and what it was measured against.
std::string evidence_text(const tracker::Evidence& evidence, tracker::Axis axis);

// What its verdict rests on: each figure with its bar.
std::vector<std::string> evidence_texts(const tracker::SeriesVerdict& reading);

// What is there and does not grow, a role each: "compile_worker x9: ...; constant".
std::vector<std::string> overhead_texts(const tracker::RunVerdict& verdict);
// What was not seen.
std::vector<std::string> loss_texts(const tracker::RunTracks& run);

// One line of a live run: when, floor, ceiling, slope, verdict so far.
std::string track_line(const tracker::JudgedRun& result, double t_s);

// The answer of `track --json`, schema 1; docs/output.md lists every field. Sizes in bytes, times
// in seconds, unknown is null. Without the line end. `last`: nullptr where nobody looked.
std::string track_json(const tracker::JudgedRun& result, const tracker::LastLook* last = nullptr);
// The field "advice" of an object, as all commands have it.
void add_advice(JsonWriter& json, const std::vector<tracker::Advice>& advice);

}  // namespace tidemark::report
