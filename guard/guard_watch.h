// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/aftermath.h"
#include "guard/forecast.h"
#include "guard/guard.h"
#include "guard/guard_text.h"
#include "guard/guard_thread.h"
#include "guard/notifier.h"
#include "guard/restart.h"
#include "guard/resume_helper.h"
#include "guard/roster.h"
#include "guard/self_protection.h"
#include "guard/service_manager.h"
#include "live/last_looks.h"
#include "live/watch_handler.h"
#include "monitor/session.h"

namespace tidemark::guard {

// What outlives one start of the command. Each outlives the GuardWatch.
struct GuardServices {
  const std::optional<Notifier>& notifier;
  const ServiceManager& service;
  OomShield& shield;
  RestartLedger& restarts;
  ResumeHelper* resume = nullptr;  // nullptr: there is none
};

// The slow side of the guard, on the ticks of a Watch: who the trainers are, whether it leaks, what
// is free; it hands that to the guard_thread, and tells and records what the guard_thread does.
class GuardWatch final : public live::WatchHandler {
 public:
  // `make_look`: nullptr for this machine.
  GuardWatch(const GuardOptions& options, const GuardServices& surroundings,
             live::MakeLook make_look = nullptr);

  live::WatchPolicy policy() const override {
    return {.command = "guard", .output_wait_ns = live::kOutputWaitNs, .runs_unread = true};
  }
  std::unique_ptr<live::WatchView> make_view(live::LineWriter& lines) override;
  Status on_launch(live::LaunchOptions& options) override;
  void on_start(const RunInfo& info, live::WatchOutput& output) override;
  std::vector<RecordingSink*> sinks() override { return {&forecast_, &last_looks_.sink()}; }
  void add_to_tick(Tick& tick) override;
  void on_tick(const Tick& tick, const monitor::Session& session) override;
  int event_fd() const override;
  void on_event() override;
  void on_command_exit() override;
  bool waits_for_tree() const override;
  live::StopOrder stop_order() const override { return {limits_of_, options_.settings.grace_ns}; }
  bool has_refused() const override { return is_refused_; }
  bool finish_watching() override;
  void on_end(const live::WatchEnding& ending, live::WatchOutput& output) override;
  int exit_code(const live::WatchEnding& ending) override;

  // After the end: the command is to be started again.
  bool restarts() const { return restarts_; }
  // Those of the job at the last tick.
  const std::vector<ProcessKey>& members() const { return members_; }

 private:
  void vet(GuardTargets& list);
  void tell_of_command();
  void fill(GuardTargets& list, const Roster& roster, const Tick& tick);
  void renew_limits(const std::vector<ProcessKey>& trainers, const Tick& tick);
  void keep_service_informed(const Tick& tick);
  void tell(const GuardReport& report);
  void report_last_look();
  void say(std::int64_t wall_ns, std::string_view word, std::string_view text);
  ReportFacts facts_of(const GuardDecision& decision) const;
  bool is_command_stopped() const;
  EndedBy ended_by(const live::WatchEnding& ending) const;

  const GuardOptions& options_;
  GuardServices services_;
  live::WatchOutput* output_ = nullptr;
  std::unique_ptr<GuardThread> guard_thread_;
  std::string problem_;      // why nothing is guarded
  bool is_vetted_ = false;   // what runs is not already where it would be stopped
  bool is_refused_ = false;  // it is
  std::int64_t start_wall_ns_ = 0;

  GuardForecast forecast_;
  live::LastLooks last_looks_;
  std::shared_ptr<HeadroomReader> limits_;
  std::vector<ProcessKey> limits_of_;  // the trainers, for whom they were looked up
  double next_limits_s_ = 0.0;
  std::vector<std::string> told_setup_;  // of this start; of the first one only on stderr
  bool told_who_ = false;
  double next_status_s_ = 0.0;

  std::vector<EventRecord> events_;  // for the next tick
  std::optional<std::int64_t> step_;
  std::vector<ProcessKey> members_;  // at the last tick
  GuardAftermath aftermath_;
  std::int64_t stopped_wall_ns_ = 0;  // since when it counts as stopped
  std::int64_t command_ended_wall_ns_ = INT64_MAX;
  // That it goes on though the trainers were stopped: in so many ticks; 0: no.
  int tells_of_command_in_ = 0;
  bool is_over_ = false;
  bool saw_oom_kill_ = false;
  bool restarts_ = false;
};

}  // namespace tidemark::guard
