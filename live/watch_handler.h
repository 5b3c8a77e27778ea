// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/process_table.h"
#include "common/recording_sink.h"
#include "common/records.h"
#include "common/result.h"
#include "common/run_summary.h"
#include "live/launch/launch.h"
#include "live/line_writer.h"
#include "live/watch_output.h"
#include "monitor/session.h"

namespace tidemark::live {

// What a command shows of what it watches. As it stands it shows nothing.
class WatchView {
 public:
  virtual ~WatchView() = default;
  // Before the first tick.
  virtual void on_start(const RunInfo& /*info*/) {}
  virtual void on_tick(const Tick& /*tick*/, const ProcessKey& /*trainer*/,
                       const ProcessLookup& /*lookup*/) {}
  virtual void on_end(const RunSummary& /*summary*/) {}
  // Another limit holds from the next tick on: the trainer has one of its own, or it was changed.
  virtual void on_limit(std::optional<std::uint64_t> /*bytes*/, const std::string& /*source*/) {}

  // Of a view that its user can answer. The descriptor is readable when on_input() has something to
  // do; -1: never.
  virtual int input_fd() const { return -1; }
  // Takes in what the user has done; false when that was to close it.
  virtual bool on_input() { return true; }
  // What is to be marked in the run since the last call, in words; empty: it is given a number.
  virtual std::vector<std::string> take_marks() { return {}; }
  // False: stderr is the place for this message of ours.
  virtual bool show_message(const std::string& /*text*/) { return false; }
  // Nothing is left to watch; true: the user goes on looking, until on_input() says false.
  virtual bool stays_open() { return false; }
  // The user wants to look at one moment.
  virtual bool is_paused() const { return false; }
};

// How watching ended.
struct WatchEnding {
  int own_code = 0;                   // exit code for what we ourselves did
  std::optional<int> command_status;  // of the command that was started, as a shell reports it
  bool was_told_to_stop = false;      // by a signal, which the command got as well
  bool ran_out_of_time = false;       // it was ended because its time was over
  std::string step_lines;  // lines in which steps were recognised, escaped: "step 120/1000"; or ""
};

// Told to stop while the command runs: who is told first, and how long the command is not told
// while they end.
struct StopOrder {
  std::vector<ProcessKey> first;
  std::int64_t patience_ns = 0;
};

// For commands that do more than to pass on the output of processes that were left behind.
inline constexpr std::int64_t kOutputWaitNs = 2 * kNsPerSecond;

// What differs between commands and is known before they run.
struct WatchPolicy {
  std::string_view command;  // its name, for hints
  // How long output is passed on when the command has ended and others have it open; nullopt: as
  // long as they have it.
  std::optional<std::int64_t> output_wait_ns = std::nullopt;
  bool runs_unread = false;  // there is a reason to watch even when nobody reads or records it
  bool reports_missing_gpu = false;  // its readers want to know why there are no figures of a GPU
};

// A command that watches a target: what it makes of the run. The calls come in the order in which
// they stand here.
class WatchHandler {
 public:
  virtual ~WatchHandler() = default;
  virtual WatchPolicy policy() const = 0;
  // Before the command is started: what it is to be started with.
  virtual Status on_launch(LaunchOptions& /*options*/) { return ok(); }
  // `lines` outlives the view. The view goes when nobody reads its lines any more.
  virtual std::unique_ptr<WatchView> make_view(LineWriter& lines) = 0;
  // `output` outlives the run.
  virtual void on_start(const RunInfo& /*info*/, WatchOutput& /*output*/) {}
  // Who else gets the whole run, each tick before on_tick(). They outlive it.
  virtual std::vector<RecordingSink*> sinks() { return {}; }

  // Adds to a tick what the session does not know; before anybody else sees it.
  virtual void add_to_tick(Tick& /*tick*/) {}
  // With what is known of the processes in it; whether or not there is a view.
  virtual void on_tick(const Tick& /*tick*/, const monitor::Session& /*session*/) {}
  // Readable when on_event() has something to do; -1: never.
  virtual int event_fd() const { return -1; }
  virtual void on_event() {}
  // The command itself has ended; others of its tree may not have.
  virtual void on_command_exit() {}
  // The time of the command is over and it is told to end: what follows is its teardown.
  virtual void on_time_limit() {}
  // Watching is over. True: there is something left to add to one more tick.
  virtual bool finish_watching() { return false; }
  // When the command has ended too.
  virtual void on_end(const WatchEnding& /*ending*/, WatchOutput& /*output*/) {}
  virtual int exit_code(const WatchEnding& ending) = 0;

  // Asked while it runs. A signal that was sent to us alone asks to stop; nobody is told first: the
  // command is at once.
  virtual StopOrder stop_order() const { return {}; }
  // What is left of the tree after the command is watched until it has ended too.
  virtual bool waits_for_tree() const { return false; }
  // It has seen that it cannot do its work: watching ends. At the first tick: nothing is recorded.
  virtual bool has_refused() const { return false; }
  // It has all that it wanted to see: watching ends.
  virtual bool is_done() const { return false; }
};

}  // namespace tidemark::live
