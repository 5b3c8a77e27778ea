// SPDX-License-Identifier: Apache-2.0
#include "report/diagnosis.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace tidemark::report {
namespace {

// What an intervention says of a suspect.
std::optional<tracker::SuspectTrial> trial_of(const RuleOutReport& report, InterventionKind kind) {
  for (const RuleOutReport::Process& process : report.processes) {
    for (const InterventionRecord& record : process.interventions) {
      if (record.kind == kind && record.outcome != InterventionOutcome::kCannotTell) {
        return tracker::SuspectTrial{record.outcome == InterventionOutcome::kConfirmed,
                                     static_cast<double>(record.effect_bytes.value_or(0))};
      }
    }
  }
  return std::nullopt;
}

tracker::SuspectRows suspects_of(const Diagnosis& diagnosis) {
  tracker::SuspectInputs inputs;
  inputs.run = &diagnosis.run;
  if (has_looks(diagnosis.owners)) {
    inputs.owners = diagnosis.owners.run;
    inputs.ranking = &diagnosis.owners.ranking;
  }
  if (!diagnosis.lines.run->empty()) {
    inputs.lines = &diagnosis.lines.ranking;
  }
  inputs.trials[static_cast<std::size_t>(tracker::Suspect::kGarbage)] =
      trial_of(diagnosis.interventions, InterventionKind::kGc);
  return tracker::judge_suspects(inputs);
}

// The tracer reads tables of libraries, whose pages are resident from then on: files that are
// mapped fill memory because we are there.
void forget_our_own_pages(Diagnosis& diagnosis) {
  static constexpr std::string_view kMappedFiles = "file_mapping";
  if (diagnosis.run.verdict && !diagnosis.lines.run->empty()) {
    std::erase_if(diagnosis.run.verdict->advice,
                  [](const tracker::Advice& advice) { return advice.id == kMappedFiles; });
  }
}

}  // namespace

Status DiagnosisBuilder::begin(const RunInfo& info) {
  command_ = info.command;
  TIDEMARK_TRY(tracks_.begin(info));
  TIDEMARK_TRY(ledgers_.begin(info));
  TIDEMARK_TRY(interventions_.begin(info));
  return owners_.begin(info);
}

Status DiagnosisBuilder::add(const Tick& tick) {
  constexpr std::size_t kMostRefused = 32;
  for (const EventRecord& event : tick.events) {
    const std::size_t colon = event.detail.find(": ");
    if (event.kind == EventKind::kRefused && colon != std::string::npos &&
        refused_.size() < kMostRefused) {
      refused_.push_back({event.detail.substr(0, colon), event.detail.substr(colon + 2)});
    }
    has_interventions_ = has_interventions_ ||
                         (event.kind == EventKind::kMark && event.detail == kInterventionsBegin);
  }
  TIDEMARK_TRY(interventions_.add(tick));
  TIDEMARK_TRY(ledgers_.add(tick));
  TIDEMARK_TRY(owners_.add(tick));
  if (has_interventions_) {
    return ok();
  }
  watched_s_ = tick.t_s;
  return tracks_.add(tick);
}

Status DiagnosisBuilder::process_ended(const ProcessRecord& process) {
  TIDEMARK_TRY(tracks_.process_ended(process));
  return owners_.process_ended(process);
}

Status DiagnosisBuilder::end(double t_s) {
  TIDEMARK_TRY(tracks_.end(t_s));
  return owners_.end(t_s);
}

tracker::JudgedRun DiagnosisBuilder::judged(const tracker::JudgeOptions& judge) const {
  return tracker::judge_run(tracks_.tracks(), judge);
}

Diagnosis DiagnosisBuilder::diagnosis(ProfileReport lines,
                                      const tracker::JudgeOptions& judge) const {
  Diagnosis diagnosis;
  diagnosis.run = judged(judge);
  diagnosis.owners = make_owners_report(owners_.owners(), lines.run, judge);
  diagnosis.owners.command = command_;
  diagnosis.lines = std::move(lines);
  forget_our_own_pages(diagnosis);
  diagnosis.refused = refused_;
  diagnosis.ledger = make_explain_report(ledgers_);
  diagnosis.interventions = interventions_.report();
  diagnosis.watched_s = watched_s_;
  diagnosis.suspects = suspects_of(diagnosis);
  return diagnosis;
}

}  // namespace tidemark::report
