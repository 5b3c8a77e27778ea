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
#include "common/records.h"
#include "common/result.h"
#include "common/run_summary.h"
#include "live/launch/launch.h"
#include "live/line_writer.h"
#include "live/watch_output.h"
#include "monitor/session.h"

namespace tidemark::live {

// What a command shows of what it watches.
class WatchView {
 public:
  virtual ~WatchView() = default;
  // Before the first tick.
  virtual void begin(const RunInfo& info) = 0;
  virtual void tick(const Tick& tick, const ProcessKey& trainer, const ProcessLookup& lookup) = 0;
  virtual void end(const RunSummary& summary) = 0;
  // Another limit holds from the next tick on: the trainer has one of its own, or it was changed.
  virtual void change_limit(std::optional<std::uint64_t> /*bytes*/, const std::string& /*source*/) {
  }

  // Of a view that its user can answer. The descriptor is readable when attend() has something to
  // do; -1: never.
  virtual int news_fd() const { return -1; }
  // Takes in what the user has done; false when that was to close it.
  virtual bool attend() { return true; }
  // How many times the user has marked a moment since the last call.
  virtual std::uint64_t take_marks() { return 0; }
  // Shows a message of ours; false: stderr is the place for it.
  virtual bool tell(const std::string& /*text*/) { return false; }
  // Nothing is left to watch; true: the user goes on looking, until attend() says false.
  virtual bool stay() { return false; }
  // The user wants to look at one moment.
  virtual bool is_paused() const { return false; }
};

// How watching ended.
struct WatchEnding {
  int own_code = 0;                   // exit code for what we ourselves did
  std::optional<int> command_status;  // of the command that was started, as a shell reports it
  bool was_told_to_stop = false;      // by a signal, which the command got as well
  bool ran_out_of_time = false;       // it was ended because its time was over
};

// Told to stop while the command runs: who is told first, and how long the command is not told
// while they end.
struct StopOrder {
  std::vector<ProcessKey> first;
  std::int64_t patience_ns = 0;
};

// Of those that have more to do than to wait for the output of processes that were left behind.
inline constexpr std::int64_t kOutputPatienceNs = 2 * kNsPerSecond;

// A command that watches a target: what it makes of the run.
class WatchUser {
 public:
  virtual ~WatchUser() = default;
  // Of the command, for hints.
  virtual std::string_view name() const = 0;
  // `lines` outlives the view. The view goes when nobody reads its lines any more.
  virtual std::unique_ptr<WatchView> make_view(LineWriter& lines) = 0;

  // Before the command is started: what it is to be started with.
  virtual Status prepare_launch(live::LaunchOptions& /*options*/) { return ok(); }
  // Adds to a tick what the session does not know; before anybody else sees it.
  virtual void complete(Tick& /*tick*/) {}
  // A signal that was sent to us alone asks to stop. Nobody is told first: the command is at once.
  virtual StopOrder stop_order() const { return {}; }
  // The time of the command is over and it is told to end: what follows is its teardown.
  virtual void begin_teardown() {}
  // Watching is over. True: there is something left to add to one more tick.
  virtual bool finish_looking() { return false; }

  // Where it may speak while the run goes on; before begin(), and for longer than the run.
  virtual void meet(WatchOutput& /*output*/) {}
  // Readable when attend() has something to do; -1: never.
  virtual int news_fd() const { return -1; }
  virtual void attend() {}
  // The command itself has ended; others of its tree may not have.
  virtual void command_ended() {}
  // What is left of the tree then is watched until it has ended too.
  virtual bool stays_with_the_tree() const { return false; }
  // How long its output is passed on after that when others have it open; nullopt: as long as they
  // have it.
  virtual std::optional<std::int64_t> output_patience_ns() const { return std::nullopt; }
  // There is a reason to watch even when nobody reads or records it.
  virtual bool goes_on_unread() const { return false; }
  // It has seen that it cannot do its work: watching ends. At the first tick: nothing is recorded.
  virtual bool gives_up() const { return false; }

  // The run itself, whether or not there is a view.
  virtual void begin(const RunInfo& /*info*/) {}
  virtual void tick(const Tick& /*tick*/) {}
  // The same tick, with what is known of the processes in it.
  virtual void see(const monitor::Session& /*session*/, const Tick& /*tick*/) {}
  virtual void process_ended(const ProcessRecord& /*process*/) {}

  // Whether its readers want to know why there are no figures of a GPU.
  virtual bool tells_of_no_gpu() const { return false; }

  // The last words, when the command has ended too.
  virtual void conclude(const WatchEnding& /*ending*/, WatchOutput& /*output*/) {}
  virtual int exit_code(const WatchEnding& ending) = 0;
};

}  // namespace tidemark::live
