// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "dashboard/attached_profile.h"
#include "dashboard/dashboard.h"
#include "dashboard/key_decoder.h"
#include "dashboard/live_judge.h"
#include "dashboard/live_sources.h"
#include "dashboard/model_builder.h"
#include "dashboard/run_history.h"
#include "dashboard/terminal.h"
#include "dashboard/view_state.h"

namespace tidemark::dashboard {

// What the thread that samples and the thread that draws share.
struct Shared {
  std::mutex mutex;  // guards the next ten
  RunHistory history;
  LiveJudge judge;
  std::deque<Tick>
      traced_ticks;  // since the first with call stacks; the thread that draws takes them
  bool is_traced = false;
  std::uint64_t profiles_ended = 0;
  std::vector<JobRow> jobs;
  std::string message;
  std::vector<std::string> notes;
  std::vector<std::string> marks;  // see Dashboard::take_marks()
  bool has_ended = false;

  Fd wake;  // eventfd: there is something to draw, or the end
  Fd news;  // eventfd: for the other thread
  std::atomic<bool> is_stopping = false;
  std::atomic<bool> is_closed = false;
  std::atomic<bool> is_paused = false;

  void pass_on_to_sites(const Tick& tick);
  void add_note(std::string_view line);
  void notify(const Fd& event) const;
  static void drain(const Fd& event);
};

// Waits for keys and samples, and draws: at most ten times a second, and only what has changed.
class ScreenLoop {
 public:
  ScreenLoop(Shared& shared, Terminal& terminal, const DashboardOptions& options);
  // Until it is told to stop or the terminal is gone.
  void run();

 private:
  bool has_the_terminal(bool may_have_been_stopped);
  void wait();
  void read_keys();
  void take_key(const Key& key);
  void run_command(const Outcome& outcome);
  void mark(std::string text);
  void send_signal(const SignalRequest& request);
  void attach_to(const ProcessKey& key);
  void detach();
  void follow_attached();
  void end_attached();
  std::string words_for(const ProcessKey& key);
  void check_for_changes();
  void judge();
  void judge_sites();
  void draw();
  DashboardModel make_model();
  void refresh_scene(const DashboardModel& model);
  void read_recorded_window();
  void measure_cpu();
  void export_screen();
  void show_message(std::string message);
  // What is shown. `shared_.mutex` must be held.
  const RunHistory& history() const { return frozen_ ? frozen_->history : shared_.history; }
  double now_s() const { return to_seconds(clock_.monotonic_ns()); }

  Shared& shared_;
  Terminal& terminal_;
  const DashboardOptions& options_;
  const SystemClock clock_;
  const Theme theme_;
  KeyDecoder decoder_;
  FramePainter painter_;
  OutputTail tail_;
  CpuMeter cpu_;
  double next_cpu_s_ = 0.0;
  ViewState state_;
  Scene scene_;
  TerminalSize size_;
  struct Frozen {
    RunHistory history;
    std::vector<JobRow> jobs;
  };
  std::optional<Frozen> frozen_;        // while it is paused
  std::vector<HistoryPoint> recorded_;  // of `recorded_window_`, from the run file
  Window recorded_window_;
  double run_now_s_ = 0.0;
  std::optional<tracker::JudgedRun> judged_;
  SiteJudge site_judge_;
  std::uint64_t profiles_ended_ = 0;  // before the one that it follows
  bool has_new_sites_ = false;        // that were not ranked yet
  std::vector<SiteRow> sites_;
  double next_sites_s_ = 0.0;
  std::unique_ptr<AttachedProfile> attached_;
  std::uint64_t ticks_seen_ = 0;
  std::uint64_t ticks_judged_ = 0;
  double next_judgement_s_ = 0.0;
  double last_drawn_s_ = -1.0;
  bool is_away_ = false;  // somebody else has the terminal
  double last_bytes_s_ = 0.0;
  double message_until_s_ = 0.0;
  std::string message_seen_;
  std::string own_message_;
  bool is_dirty_ = true;
};

}  // namespace tidemark::dashboard
