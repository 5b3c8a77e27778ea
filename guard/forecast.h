// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/process_table.h"
#include "common/recording_sink.h"
#include "common/records.h"
#include "guard/policy.h"
#include "guard/roster.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"

namespace tidemark::guard {

// How fast the job leaks, judged about once a second. Only of processes that are there: a script
// may start one trainer after the other, and what the first one did says nothing of the second.
class GuardForecast final : public RecordingSink {
 public:
  // Outlived by the options.
  explicit GuardForecast(const tracker::JudgeOptions& options) : options_(options) {}

  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override { return builder_.add(tick); }
  Status process_ended(const ProcessRecord& process) override {
    return builder_.process_ended(process);
  }
  Status end(double /*t_s*/) override { return ok(); }
  // After add(): who is who in the tick, and where the records of its processes are.
  void update(const Tick& tick, const Roster& roster, const ProcessLookup& lookup);

  // nullopt: it does not leak, or nobody can tell.
  const std::optional<LeakRate>& leak() const { return leak_; }
  // "unknown" before the first one.
  const std::string& verdict() const { return verdict_; }

 private:
  bool is_another_job(const Roster& roster) const;
  void judge(const Tick& tick);

  const tracker::JudgeOptions& options_;
  RunInfo info_;
  tracker::TrackBuilder builder_;
  std::vector<ProcessKey> trainers_;  // that were recognised last
  double next_judgement_s_ = 0.0;
  std::optional<LeakRate> leak_;
  std::optional<ProcessKey> leaks_;  // who; nullopt: several
  std::string verdict_ = "unknown";
};

}  // namespace tidemark::guard
