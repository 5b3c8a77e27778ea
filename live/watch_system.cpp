// SPDX-License-Identifier: Apache-2.0
#include "live/watch_system.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "common/check.h"
#include "monitor/procfs/process_signal.h"

namespace tidemark::live {
namespace {

class ThisMachine final : public WatchSystem {
 public:
  const Clock& clock() const override { return clock_; }
  int stdout_fd() const override { return STDOUT_FILENO; }
  int stderr_fd() const override { return STDERR_FILENO; }

  Status open_signals(SignalInbox::For purpose) override {
    TIDEMARK_TRY_ASSIGN(auto inbox, SignalInbox::open(purpose));
    inbox_.emplace(std::move(inbox));
    return ok();
  }
  std::optional<ReceivedSignal> next_signal() override { return inbox_->next(); }

  bool wait(std::int64_t due_ns, std::span<pollfd> fds) override {
    std::array<pollfd, 8> all{};
    TIDEMARK_CHECK(fds.size() < all.size(), "the loop waits for few descriptors");
    all[0] = {inbox_ ? inbox_->fd() : -1, POLLIN, 0};
    std::copy(fds.begin(), fds.end(), all.begin() + 1);
    const std::int64_t left = std::max<std::int64_t>(0, due_ns - clock_.monotonic_ns());
    const timespec timeout{left / kNsPerSecond, left % kNsPerSecond};
    const int ready = ::ppoll(all.data(), fds.size() + 1, &timeout, nullptr);
    TIDEMARK_CHECK(ready >= 0 || errno == EINTR, "ppoll takes these descriptors");
    for (std::size_t i = 0; i < fds.size(); ++i) {
      fds[i].revents = ready > 0 ? all[i + 1].revents : short{0};
    }
    return ready > 0 && all[0].revents != 0;
  }

  Result<std::unique_ptr<monitor::ProcessSource>> open_processes() override {
    return monitor::make_procps_source();
  }
  Result<std::unique_ptr<Command>> launch(const LaunchOptions& options) override {
    TIDEMARK_TRY_ASSIGN(auto command, LaunchedCommand::start(options, *inbox_));
    return std::unique_ptr<Command>(std::make_unique<LaunchedCommand>(std::move(command)));
  }
  void send_signal(const ProcessKey& key, int number) override {
    monitor::send_signal(key, number);
  }

 private:
  const SystemClock clock_{};
  std::optional<SignalInbox> inbox_;
};

}  // namespace

std::unique_ptr<WatchSystem> make_watch_system() { return std::make_unique<ThisMachine>(); }

}  // namespace tidemark::live
