// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tracker/curve/series_verdict.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

// The tracker speaks in numbers; these are the words. All of it is escaped.
namespace tidemark::report {

std::string size_text(double bytes);
// "+1.20 GiB".
std::string change_text(double bytes);
// A growth per second or per step, as the axis says: "72.0 MiB/min", "1.20 MiB/step".
std::string per_axis_text(double bytes, tracker::Axis axis);
std::string number_text(double value);
std::string percent_text(double share);
// "step 90" or "00:03:20", on the axis that was judged; "?" when it is not known there.
std::string place_text(const tracker::Moment& at, tracker::Axis axis);
// "1.20 MiB/step, 72.0 MiB/min", the judged axis first; "" when nothing is known.
std::string rate_text(const tracker::GrowthRate& rate, tracker::Axis axis);
// "trainer, pid 1240 (python3)", "compile_worker x20", "the whole tree".
std::string who_text(const tracker::Track& track);

// The answer in one or two sentences: what, who, how fast, since when, until when.
std::string answer_text(const tracker::JudgedRun& result);
// Options that could not be counted, each with what applies instead: a sentence.
std::vector<std::string> ignored_options(const tracker::JudgedRun& result);
// What to do when no known cause fits: a sentence.
std::string next_text(const tracker::JudgedRun& result);

}  // namespace tidemark::report
