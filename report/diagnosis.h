// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/recording_sink.h"
#include "report/explain_text.h"
#include "report/intervention_run.h"
#include "report/output.h"
#include "report/owners_text.h"
#include "report/profile_report.h"
#include "report/track_words.h"
#include "tracker/causes/suspects.h"
#include "tracker/ledgers/ledgers.h"
#include "tracker/owners/owner_tracks.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"

namespace tidemark::report {

// What a diagnosis looks at beside the curve. The names are in run files and JSON: they never
// change.
inline constexpr std::string_view kOwnersDepth = "owners";
inline constexpr std::string_view kLinesDepth = "lines";
inline constexpr std::string_view kLedgerDepth = "ledger";
inline constexpr std::string_view kInterventionsDepth = "interventions";

// A mark in the run: what memory does from here on is our own doing, and no part of the curve.
inline constexpr std::string_view kInterventionsBegin = "interventions begin";

// What could not be looked at, and why: raw bytes.
struct RefusedDepth {
  std::string what;  // one of the above
  std::string why;
};

// All that the page of `tidemark diagnose` says. What its parts point to outlives it.
struct Diagnosis {
  tracker::JudgedRun run;
  OwnersReport owners;
  ProfileReport lines;
  ExplainReport ledger;
  RuleOutReport interventions;
  tracker::SuspectRows suspects;
  std::vector<RefusedDepth> refused;
  JudgedTarget target;
  double watched_s = 0.0;
};

// Collects from a run, live or from a file, what a diagnosis needs beside call stacks.
class DiagnosisBuilder final : public RecordingSink {
 public:
  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  Status end(double t_s) override;

  // `lines`: of the same run.
  Diagnosis diagnosis(ProfileReport lines, const tracker::JudgeOptions& judge) const;
  // Only the curve, which is known soon.
  tracker::JudgedRun judged(const tracker::JudgeOptions& judge) const;

 private:
  tracker::TrackBuilder tracks_;
  tracker::OwnerTrackBuilder owners_;
  tracker::LedgerBuilder ledgers_;
  InterventionRun interventions_;
  std::vector<RefusedDepth> refused_;
  std::string command_;
  bool has_interventions_ = false;
  double watched_s_ = 0.0;
};

// One page, the answer first. Everything in it is escaped.
std::string diagnosis_text(const Diagnosis& diagnosis, const ProfileStyle& style);
// One line of a run that goes on, without a line end: "00:00:23  step 120  LIKELY LEAK 78 %, +60
// MiB/min; held by collator.cache, made at train.py:41 in collate".
std::string diagnosis_line(const Diagnosis& diagnosis, double t_s);
// One object, as docs/output.md has it; without a line end.
std::string diagnosis_json(const Diagnosis& diagnosis);

// Its parts. All of it is escaped.

// The answer in one or two sentences: what it is, how fast, until when, who holds it, which line.
std::string diagnosis_answer(const Diagnosis& diagnosis);
// What will tell a leak from a warm-up, in a sentence; "" where nothing is open.
std::string deciding_text(const Diagnosis& diagnosis);

}  // namespace tidemark::report
