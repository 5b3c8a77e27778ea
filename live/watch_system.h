// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/clock.h"
#include "common/process_key.h"
#include "common/result.h"
#include "live/launch/launch.h"
#include "live/launch/signal_inbox.h"
#include "monitor/procfs/process_source.h"
#include "monitor/session.h"

namespace tidemark::live {

// The machine as the loop of watch() sees it: time, signals, processes, and a command to start. One
// real implementation; tests have a scripted one. Not thread-safe.
class WatchSystem {
 public:
  virtual ~WatchSystem() = default;
  virtual const Clock& clock() const = 0;
  virtual int stdout_fd() const = 0;
  virtual int stderr_fd() const = 0;

  // Before any thread is started. From now on signals come by next_signal() only.
  virtual Status open_signals(SignalInbox::For purpose) = 0;
  // nullopt: there is none now.
  virtual std::optional<ReceivedSignal> next_signal() = 0;
  // Sleeps until `due_ns`, until a signal has come, or until one of `fds` (-1: ignored) is
  // readable: their `revents` say which. True: a signal. It may return early.
  virtual bool wait(std::int64_t due_ns, std::span<pollfd> fds) = 0;

  virtual Result<std::unique_ptr<monitor::ProcessSource>> open_processes() = 0;
  // Where a session finds the machine's files; the rest of the options is the caller's.
  virtual monitor::SessionOptions session_options() const { return {}; }
  // After open_signals(), which it refers to.
  virtual Result<std::unique_ptr<Command>> launch(const LaunchOptions& options) = 0;
  virtual void send_signal(const ProcessKey& key, int number) = 0;
};

std::unique_ptr<WatchSystem> make_watch_system();

}  // namespace tidemark::live
