// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/process_key.h"
#include "common/result.h"
#include "live/launch/signal_inbox.h"

namespace tidemark::live {

struct LaunchOptions {
  std::vector<std::string> argv;
  // Descriptors that become the command's stdin, stdout and stderr; -1: it inherits ours,
  // untouched.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  // Variables that it gets beside ours, or instead of ours of the same name.
  std::vector<std::pair<std::string, std::string>> environment;
};

// A child of ours that has ended.
struct ReapedChild {
  pid_t pid = 0;
  int wait_status = 0;  // as from waitpid(2)
};

// A command that was started: who it is, and how it ends.
class Command {
 public:
  virtual ~Command() = default;
  virtual const ProcessKey& key() const = 0;
  // SIGCHLD: reaps. SIGTSTP: stops us as well. Others: passed on to the command, unless the
  // terminal has already sent them to it.
  virtual void handle(const ReceivedSignal& signal) = 0;
  // What a shell would report: the exit status, or 128 + the signal. nullopt while it runs.
  virtual std::optional<int> exit_code() const = 0;
  // All children that were reaped since the last call: the command and orphans of it.
  virtual std::vector<ReapedChild> take_reaped() = 0;

  bool running() const { return !exit_code(); }
};

// `-- CMD ARGS...`: the command as it would run without us. It stays in our process group (so the
// terminal's Ctrl-C and Ctrl-Z reach it by themselves, and whoever kills the group gets both), has
// the signal mask and dispositions that we were started with, and outlives us if we are killed.
// While an object lives we are the reaper of the command's orphans, so that they stay in our tree.
//
// The main loop waits for the inbox (and its next tick) and passes every signal to handle().
class LaunchedCommand final : public Command {
 public:
  // An exec that fails is an error here, with its errno; nothing runs then.
  static Result<LaunchedCommand> start(const LaunchOptions& options, const SignalInbox& inbox);
  ~LaunchedCommand() override;
  LaunchedCommand(LaunchedCommand&& other) noexcept;
  LaunchedCommand& operator=(LaunchedCommand&&) = delete;

  const ProcessKey& key() const override { return key_; }
  void handle(const ReceivedSignal& signal) override;
  std::optional<int> exit_code() const override;
  std::vector<ReapedChild> take_reaped() override;

 private:
  explicit LaunchedCommand(ProcessKey key) : key_(key) {}
  void reap();

  ProcessKey key_;  // pid 0: moved from
  std::optional<int> wait_status_;
  std::vector<ReapedChild> reaped_;
};

}  // namespace tidemark::live
