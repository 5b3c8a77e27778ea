// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "common/process_key.h"
#include "common/result.h"
#include "live/launch/ending.h"
#include "live/launch/launch.h"
#include "live/watch_handler.h"
#include "live/watch_output.h"
#include "live/watch_system.h"

namespace tidemark::live {

// The command of a watch, if there is one: how it is told to stop, when its time is over, and how
// it and its orphans ended. Not thread-safe.
class CommandRun {
 public:
  // All outlive it.
  CommandRun(WatchSystem& system, WatchHandler& handler, WatchOutput& output)
      : system_(system), handler_(handler), output_(output) {}

  // `end_after_ns`: it is ended then, with all that is left of its tree.
  Status start(const LaunchOptions& options, std::optional<std::int64_t> end_after_ns);
  bool has_started() const { return command_ != nullptr; }
  const ProcessKey& key() const { return command_->key(); }  // after start()
  bool running() const { return command_ != nullptr && command_->running(); }
  std::optional<int> exit_code() const {
    return command_ != nullptr ? command_->exit_code() : std::nullopt;
  }

  // A signal that came to us. True: the command has exited.
  bool on_signal(const ReceivedSignal& signal);
  // Told to stop while it ran.
  bool was_told_to_stop() const { return was_told_to_stop_; }

  // Told to stop, the handler's processes are told first (StopOrder); the command is told when
  // those have exited or their time is over.
  bool delays_stop() const { return stop_.has_value(); }
  void pass_on_stop();
  void forget_delayed_stop() { stop_.reset(); }
  // Readable when pass_on_stop() may have something to do; -1: never.
  int stop_fd() const { return stop_ ? stop_->fd() : -1; }
  std::int64_t stop_end_ns() const { return stop_ ? stop_->end_ns() : INT64_MAX; }

  // When end_at_time_limit() has something to do next.
  std::int64_t time_limit_ns() const { return ending_ ? ending_->due_ns() : INT64_MAX; }
  void end_at_time_limit(std::span<const ProcessKey> members);
  bool ran_out_of_time() const { return ending_ && ending_->has_begun(); }

  // Of the children that were reaped since they were last forgotten, as from waitpid(2).
  const std::unordered_map<pid_t, int>& wait_statuses() const { return wait_statuses_; }
  void forget_wait_statuses() { wait_statuses_.clear(); }

 private:
  bool delay_stop(const ReceivedSignal& signal);

  WatchSystem& system_;
  WatchHandler& handler_;
  WatchOutput& output_;
  std::unique_ptr<Command> command_;
  std::optional<StopRequest> stop_;            // to those that are told first
  std::optional<ReceivedSignal> stop_signal_;  // for the command, after them
  std::optional<TreeEnding> ending_;
  std::unordered_map<pid_t, int> wait_statuses_;
  bool was_told_to_stop_ = false;
};

// ", killed by SIGKILL"; empty for a process that ended well.
std::string exit_text(int wait_status);

}  // namespace tidemark::live
