// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "common/records.h"
#include "common/result.h"
#include "live/launch/launch.h"
#include "live/launch/output_relay.h"
#include "live/launch/signal_inbox.h"
#include "live/launch/stop_request.h"
#include "live/launch/tree_ending.h"
#include "live/watch_handler.h"
#include "live/watch_options.h"
#include "live/watch_output.h"
#include "monitor/markers/step_log.h"
#include "monitor/procfs/process_source.h"
#include "monitor/roles/finder.h"
#include "monitor/session.h"
#include "recording/recorder.h"

namespace tidemark::live {

// Watches a target for a command, from finding it to the last line: its beginning and end are in
// watch.cpp, what goes on between them in watch_loop.cpp.
class Watch {
 public:
  // Both outlive it.
  Watch(const WatchOptions& options, WatchHandler& handler)
      : options_(options),
        handler_(handler),
        policy_(handler.policy()),
        start_ns_(clock_.monotonic_ns()) {}

  int run();

 private:
  static constexpr std::string_view kIncomplete =
      "the recording is incomplete; what was written before is readable";

  static constexpr std::string_view kUnrecorded = "watching goes on without recording";

  bool wraps_command() const { return !options_.target.command.empty(); }
  Status prepare();
  Status open_step_source();
  Status launch();
  Status start_session(monitor::TreeRoots roots);
  void begin();
  void begin_recording();
  RunInfo describe() const;

  void watch();
  bool sample(std::int64_t due_ns);
  void pass_on_limit();
  std::vector<MarkerRecord> steps_from_log();
  std::vector<LossRecord> take_losses();
  void record(const Tick& tick, const std::vector<ProcessRecord>& ended);

  enum class Wake { kDue, kSignal, kEvent };
  // Sleeps until `due_ns`, a signal, or until one of two descriptors (-1: none) is readable.
  // Also when its user has answered the view.
  Wake sleep_until(std::int64_t due_ns, int event_fd = -1, int other_event_fd = -1) const;
  // Sleeps until `due_ns`; false when watching is over.
  bool wait_until(std::int64_t due_ns);
  void handle_signals();
  bool delay_stop(const ReceivedSignal& signal);
  void pass_on_stop();
  bool is_worth_watching() const;
  bool command_runs() const { return command_ && command_->running(); }
  // The command has ended, and others still have its output open or it is not all written.
  bool output_is_open() const {
    return relay_ && !command_runs() && !relay_->at_end() && clock_.monotonic_ns() < output_end_ns_;
  }
  bool waits_for_tree();
  void end_at_time_limit();
  void report_open_output();
  void settle_output();
  void wait_for_command();
  void report_unheld_segments();
  void finish();

  void check_lines();
  void handle_view_input();
  void end_view();
  void end_recording();
  int finish_output(int own_code);

  const WatchOptions& options_;
  WatchHandler& handler_;
  const WatchPolicy policy_;
  const SystemClock clock_;
  const std::int64_t start_ns_;
  std::optional<SignalInbox> inbox_;
  std::optional<WatchOutput> output_;
  Fd command_output_;  // see WatchOptions
  std::optional<OutputRelay> relay_;
  std::optional<monitor::LogFollower> log_;
  std::optional<LaunchedCommand> command_;
  std::optional<StopRequest> stop_;            // whose end the command waits for, to be told
  std::optional<ReceivedSignal> stop_signal_;  // which it is told by then
  std::optional<TreeEnding> ending_;           // of the command, when its time is limited
  std::unique_ptr<monitor::ProcessSource> source_;
  std::unique_ptr<monitor::Session> session_;
  std::unique_ptr<recording::Recorder> recorder_;
  std::unique_ptr<WatchView> view_;               // nullptr once nobody reads it any more
  std::unordered_map<pid_t, int> wait_statuses_;  // of our own children, since the last look
  std::optional<monitor::NoPick> no_pick_;        // why --find-training found nobody
  std::vector<MarkerRecord> late_steps_;          // found after the last look
  monitor::StepLosses late_lost_;
  std::uint64_t marks_ = 0;
  std::optional<std::uint64_t> limit_bytes_;  // that the view knows of
  std::int64_t output_end_ns_ = INT64_MAX;    // for how long it is worth waiting for
  bool is_waiting_for_tree_ = false;          // with what is left of the tree
  bool told_to_stop_ = false;
  bool command_was_told_to_stop_ = false;
  bool reported_open_output_ = false;
  bool told_lost_lines_ = false;
  bool has_begun_recording_ = false;
  bool has_failed_ = false;  // something that the user asked for is missing or incomplete
};

}  // namespace tidemark::live
