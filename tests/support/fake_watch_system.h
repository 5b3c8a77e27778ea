// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/io.h"
#include "live/watch_system.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_proc.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {

// A machine whose time passes only while the loop sleeps, and where things happen at the times that
// the test gives. Its processes are those of `proc`.
class FakeWatchSystem final : public live::WatchSystem {
 public:
  static constexpr pid_t kCommandPid = 4'000'001;  // above every pid of this machine

  FakeWatchSystem();
  ~FakeWatchSystem() override;
  FakeWatchSystem(const FakeWatchSystem&) = delete;
  FakeWatchSystem& operator=(const FakeWatchSystem&) = delete;

  // At `t_s` after the start of the run, in the order of time.
  void at(double t_s, std::function<void()> happens);
  void deliver(int number, bool from_kernel = false);
  // A process with this footprint, a child of `ppid`; its memory is written anew if it is there. As
  // a child of this process it is an orphan of the command.
  void put(pid_t pid, std::uint64_t mib, pid_t ppid = 1);
  // A child of this process that has nothing to do with the command.
  void put_stranger(pid_t pid, std::uint64_t mib);
  void end(pid_t pid);
  // The command, which has to be running.
  void end_command(int wait_status);
  double now_s() const;

  std::string stdout_text() const;
  std::string stderr_text() const;

  FakeClock fake_clock;
  FakeProc proc;
  TempTree machine;
  TempTree shm;
  std::optional<live::LaunchOptions> launched;
  std::optional<Error> launch_error;
  std::vector<int> passed_on;                  // signals that the command got
  std::vector<std::pair<pid_t, int>> signals;  // by send_signal()
  Fd closed_stdout;                            // instead of the file: nobody reads it

  const Clock& clock() const override { return fake_clock; }
  int stdout_fd() const override { return closed_stdout ? closed_stdout.get() : stdout_.get(); }
  int stderr_fd() const override { return stderr_.get(); }
  Status open_signals(live::SignalInbox::For purpose) override;
  std::optional<live::ReceivedSignal> next_signal() override;
  bool wait(std::int64_t due_ns, std::span<pollfd> fds) override;
  Result<std::unique_ptr<monitor::ProcessSource>> open_processes() override;
  monitor::SessionOptions session_options() const override;
  Result<std::unique_ptr<live::Command>> launch(const live::LaunchOptions& options) override;
  void send_signal(const ProcessKey& key, int number) override {
    signals.emplace_back(key.pid, number);
  }

 private:
  class FakeCommand;

  const std::int64_t start_ns_;
  const Syscalls real_syscalls_;
  std::multimap<std::int64_t, std::function<void()>> script_;  // by time
  std::vector<live::ReceivedSignal> waiting_;
  FakeCommand* command_ = nullptr;  // owned by the loop
  Fd stdout_;
  Fd stderr_;
};

}  // namespace tidemark::tests
