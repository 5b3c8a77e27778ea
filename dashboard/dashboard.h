// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "dashboard/dashboard_model.h"
#include "live/line_writer.h"
#include "live/watch_handler.h"
#include "report/track_words.h"
#include "tracker/run/judged_run.h"

namespace tidemark::dashboard {

struct DashboardOptions {
  bool can_mark = false;
  bool can_signal = false;
  report::JudgedTarget target;         // for the next command; empty for a recording
  std::optional<double> replay_speed;  // of a recording that is played
  std::string output_path;             // of the command's output; empty: there is no command
  std::string run_file;                // where the run is recorded; empty: nowhere
  tracker::JudgeOptions judge;
  // Whether a profile that gave call stacks has ended since the last call; none: there is none.
  std::function<bool()> take_end_of_profile;
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
  void show_message(const std::string& text);
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
  // Moments that the user has marked since the last call, in words; empty: without.
  std::vector<std::string> take_marks();
  bool is_paused() const;

  // The verdict on what was added so far, as `track` gives it: its sentence and the next command.
  std::string verdict_text() const;

 private:
  struct State;
  explicit Dashboard(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Whether this build has a dashboard and there is a terminal for it.
bool dashboard_is_possible();

// `monitor` on a terminal. nullptr when the terminal cannot be had after all. What must be read
// after it is written to `lines` when it ends, which must outlive it.
std::unique_ptr<live::WatchView> make_dashboard_view(live::LineWriter& lines,
                                                     const DashboardOptions& options);

}  // namespace tidemark::dashboard
