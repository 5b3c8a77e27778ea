// SPDX-License-Identifier: Apache-2.0
#include "monitor/output_relay.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "common/check.h"
#include "common/fd.h"
#include "monitor/output_channel.h"
#include "monitor/step_log.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kMaxWaitingSteps = 65'536;
// A pseudo-terminal hands bytes on from a kernel thread: what a process wrote before it ended can
// come a moment later.
constexpr int kDrainMs = 50;

// Writes all, whatever mode the descriptor is in; false when nobody reads it any more.
bool write_through(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// The steps that all channels have found and the main loop has not taken.
class StepQueue {
 public:
  void add(std::vector<MarkerRecord>& steps) {
    const std::lock_guard lock(mutex_);
    for (MarkerRecord& step : steps) {
      if (steps_.size() < kMaxWaitingSteps) {
        steps_.push_back(std::move(step));
      } else {
        ++lost_;
      }
    }
    steps.clear();
  }
  void take(std::vector<MarkerRecord>& out) {
    const std::lock_guard lock(mutex_);
    std::move(steps_.begin(), steps_.end(), std::back_inserter(out));
    steps_.clear();
  }
  std::uint64_t take_lost() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lost_, 0);
  }

 private:
  std::mutex mutex_;
  std::vector<MarkerRecord> steps_;
  std::uint64_t lost_ = 0;
};

}  // namespace

struct OutputRelay::State {
  State(const Options& options_in, const Clock& clock_in) : options(options_in), clock(clock_in) {}
  ~State() { stop(); }

  void stop() {
    if (threads.empty()) {
      return;
    }
    const std::uint64_t one = 1;
    TIDEMARK_CHECK(::write(stopping.get(), &one, sizeof one) == sizeof one,
                   "an eventfd takes a small number");
    for (std::thread& thread : threads) {
      thread.join();
    }
    threads.clear();
  }

  void run(OutputChannel& channel);
  // Waits for bytes; false when there will be none.
  bool wait(const OutputChannel& channel) const;

  Options options;
  const Clock& clock;
  std::vector<OutputChannel> channels;  // stdout, and stderr if it goes elsewhere
  std::mutex closing;                   // of a channel by its thread, against copy_window_size()
  Fd stopping;
  std::vector<std::thread> threads;
  StepQueue steps;
};

bool OutputRelay::State::wait(const OutputChannel& channel) const {
  std::array<pollfd, 2> wanted = {{{channel.ours.get(), POLLIN, 0}, {stopping.get(), POLLIN, 0}}};
  while (::poll(wanted.data(), wanted.size(), -1) < 0) {
    if (errno != EINTR) {
      return false;
    }
  }
  if (wanted[0].revents != 0) {
    return true;
  }
  return ::poll(wanted.data(), 1, kDrainMs) > 0;  // stopping: only what is on its way
}

void OutputRelay::State::run(OutputChannel& channel) {
  StepScanner scanner(options.pattern);
  std::vector<MarkerRecord> found;
  std::vector<char> buffer(64U << 10U);
  const auto now_s = [&] { return to_seconds(clock.monotonic_ns() - options.run_start_ns); };
  while (wait(channel)) {
    const ssize_t n = ::read(channel.ours.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (n <= 0) {
      break;  // end of a pipe; EIO: the last process has closed the terminal
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    if (!write_through(channel.sink, bytes)) {
      break;
    }
    scanner.feed(bytes, now_s(), found);
    steps.add(found);
  }
  {
    const std::lock_guard lock(closing);
    channel.ours.reset();  // whoever still writes learns that nobody reads
  }
  scanner.end(now_s(), found);
  steps.add(found);
}

OutputRelay::OutputRelay(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputRelay::~OutputRelay() = default;
OutputRelay::OutputRelay(OutputRelay&&) noexcept = default;
OutputRelay& OutputRelay::operator=(OutputRelay&&) noexcept = default;

Result<OutputRelay> OutputRelay::open(const Options& options, const Clock& clock) {
  auto state = std::make_unique<State>(options, clock);
  state->stopping.reset(::eventfd(0, EFD_CLOEXEC));
  if (!state->stopping) {
    return system_error("cannot make an eventfd", errno);
  }
  std::vector<int> sinks = {options.stdout_sink};
  if (!same_destination(options.stdout_sink, options.stderr_sink)) {
    sinks.push_back(options.stderr_sink);
  }
  for (const int sink : sinks) {
    auto channel = OutputChannel::open(sink);
    if (!channel) {
      return channel.error();
    }
    state->channels.push_back(std::move(*channel));
  }
  return OutputRelay(std::move(state));
}

int OutputRelay::child_stdout() const { return state_->channels.front().theirs.get(); }
int OutputRelay::child_stderr() const { return state_->channels.back().theirs.get(); }

void OutputRelay::begin() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  for (OutputChannel& channel : state_->channels) {
    channel.theirs.reset();
    state_->threads.emplace_back([state = state_.get(), &channel] { state->run(channel); });
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void OutputRelay::copy_window_size() {
  const std::lock_guard lock(state_->closing);
  for (const OutputChannel& channel : state_->channels) {
    channel.copy_window_size();
  }
}

void OutputRelay::take(std::vector<MarkerRecord>& out) { state_->steps.take(out); }
std::uint64_t OutputRelay::take_lost() { return state_->steps.take_lost(); }
void OutputRelay::finish() { state_->stop(); }

}  // namespace tidemark::monitor
