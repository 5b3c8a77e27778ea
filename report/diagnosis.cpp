// SPDX-License-Identifier: Apache-2.0
#include "report/diagnosis.h"

#include <algorithm>
#include <utility>

namespace tidemark::report {

Status DiagnosisBuilder::begin(const RunInfo& info) {
  command_ = info.command;
  TIDEMARK_TRY(tracks_.begin(info));
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
  }
  watched_s_ = tick.t_s;
  TIDEMARK_TRY(tracks_.add(tick));
  return owners_.add(tick);
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
  diagnosis.refused = refused_;
  diagnosis.watched_s = watched_s_;
  return diagnosis;
}

}  // namespace tidemark::report
