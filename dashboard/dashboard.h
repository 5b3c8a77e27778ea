// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "dashboard/dashboard_model.h"
#include "dashboard/live_judge.h"
#include "dashboard/site_judge.h"

namespace tidemark::dashboard {

struct DashboardOptions {
  bool can_mark = false;
  std::optional<double> replay_speed;  // of a recording that is played
  std::string output_path;             // of the command whose output is kept there; empty: none
  std::string run_file;                // where the run is recorded; empty: nowhere
  tracker::JudgeOptions judging;
};

// The screen of `tidemark monitor`: takes the terminal, draws what it is told of a run, and handles
// keys, all in a thread of its own, so that sampling never waits for a terminal. All calls come
// from one thread. Open it after the SignalInbox: its thread must not take signals.
class Dashboard {
 public:
  static Result<std::unique_ptr<Dashboard>> open(DashboardOptions options);
  // Gives the terminal back.
  ~Dashboard();
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;

  void begin(const RunInfo& info);
  // Instead of the one that the run began with.
  void set_limit(std::optional<std::uint64_t> bytes, const std::string& source);
  void add(const Tick& tick, const ProcessKey& trainer);
  // A message of ours, whole lines: shown until the next, and kept for the help screen.
  void tell(const std::string& text);
  // What a job server does; replaces what was known. Empty: there is none.
  void set_jobs(std::vector<JobRow> jobs);
  // The profile that gave the call stacks so far has ended; another may come.
  void forget_sites();
  // The run is over; the screen stays.
  void set_ended();

  // True once the user has asked to leave. The descriptor becomes readable then, or when there is a
  // mark to take or the pause has changed.
  bool is_closed() const;
  int news_fd() const;
  // Forgets that there were news.
  void take_news();
  // Moments that the user has marked since the last call.
  std::uint64_t take_marks();
  bool is_paused() const;

 private:
  struct State;
  explicit Dashboard(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tidemark::dashboard
