// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/records.h"
#include "common/units.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

// Verdicts and figures of the tracker in words. All of it is escaped.
namespace tidemark::report {

// What a figure on the axis counts against.
inline RateUnit unit_of(tracker::Axis axis) {
  return axis == tracker::Axis::kSteps ? RateUnit::kStep : RateUnit::kSecond;
}
std::string number_text(double value);
// "step 90" or "00:03:20", on the axis that was judged; "?" when it is not known there.
std::string place_text(const tracker::Moment& at, tracker::Axis axis);
// "1.20 MiB/step, 72.0 MiB/min", the judged axis first; "" when nothing is known.
std::string rate_text(const tracker::GrowthRate& rate, tracker::Axis axis, RateFormat format = {});
// "trainer 3, pid 1240 (train.py)", as far as it is known; at most so much of the name.
std::string process_label(Role role, const std::optional<std::uint32_t>& rank, pid_t pid,
                          std::string_view name, std::size_t columns);
// "trainer, pid 1240 (train.py)", "compile_worker x20", "the whole tree".
std::string who_text(const tracker::Track& track);

// What a curve is of: "footprint of trainer, pid 1240 (train.py)", "GPU memory of the whole tree".
std::string curve_text(tracker::Metric metric, const tracker::Track& track);

// "GPU memory grew by 1.2 GiB since step 25, torch's allocator explains 240 MiB (20 %): ...".
std::string gpu_growth_text(const tracker::GpuGrowth& growth, tracker::Axis axis);

// The answer in one or two sentences: what, who, how fast, since when, until when.
std::string answer_text(const tracker::JudgedRun& result);

// The name of the verdict; "too early" where the samples are too few for one.
std::string_view verdict_so_far(const tracker::SeriesVerdict& reading, tracker::Verdict verdict);

// The same in the few words that a line of a screen has room for.

// "LEAK", "LIKELY LEAK 80 %", "STABLE", "TOO EARLY", ...
std::string short_verdict(const tracker::SeriesVerdict& reading, tracker::Verdict verdict);
// "+5.0 MiB/step, +1.5 GiB/min since step 25".
std::string short_finding(const tracker::SeriesVerdict& reading, tracker::Verdict verdict);
// The same of what grows, and no more.
std::string short_growth(const tracker::SeriesVerdict& reading, tracker::Verdict verdict);
// "limit 23.5 GiB in 14 min to 19 min"; "" when nothing is known.
std::string short_forecast(const tracker::SeriesVerdict& reading);

// Of what grows: "grows by 5.0 MiB/step, 1.5 GiB/min since step 25".
std::string grows_text(const tracker::SeriesVerdict& reading, tracker::Verdict verdict);
// When it is full as a sentence: "At this rate it reaches the limit of 23.5 GiB (physical memory)
// in 14 min to 19 min."
std::string forecast_text(const tracker::SeriesVerdict& reading, const std::string& limit_source);
// Growth that ends when all shared pages are copied: it has words of its own.
bool is_bounded_copying(const tracker::TrackVerdict& answer, tracker::Verdict verdict);

// Options that could not be counted, each with what applies instead: a sentence.
std::vector<std::string> ignored_options(const tracker::JudgedRun& result);
// "a leak above 12.0 KiB/step would have been seen"; "" when that is not known.
std::string detectable_text(const tracker::SeriesVerdict& reading);
// What was judged, as far as it can be looked at again.
struct JudgedTarget {
  std::string running;  // the options for it: "--pid 12", "--find-training"; empty: it is over
  std::string command;  // that was started, for a shell; empty: not known
};
// The next command to type and what it is good for: a sentence.
std::string next_text(const tracker::JudgedRun& result, const JudgedTarget& target);
// The limit may be reached before the verdict has what it needs: watching alone comes too late.
bool fills_before_verdict(const tracker::SeriesVerdict& reading);
// Or a likely leak reaches it within the hour: not to be left alone until it is sure.
bool fills_soon(const tracker::SeriesVerdict& reading);
// "+1.0 MiB/min": of growth that is too small yet to count; "" where there is none.
std::string late_rise_rate(const tracker::SeriesVerdict& reading);
// "31min": for how long to watch on to get what the verdict needs.
std::string duration_needed(const tracker::SeriesVerdict& reading);

}  // namespace tidemark::report
