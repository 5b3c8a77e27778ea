// SPDX-License-Identifier: Apache-2.0
#include "live/launch/output_relay.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "common/fd.h"
#include "common/io.h"
#include "common/quiet_thread.h"
#include "live/launch/output_channel.h"
#include "live/launch/output_standby.h"

namespace tidemark::live {
namespace {

constexpr std::size_t kMaxWaitingSteps = 65'536;
// A pseudo-terminal hands bytes on from a kernel thread: what a process wrote before it ended can
// come a moment later.
constexpr int kDrainMs = 50;
// For a thread to notice that it is to stop, if it is not held up by whoever reads our output.
constexpr int kLeaveMs = 500;

void signal_event(const Fd& event) {
  const std::uint64_t one = 1;
  TIDEMARK_CHECK(::write(event.get(), &one, sizeof one) == sizeof one,
                 "an eventfd takes a small number");
}

// The steps that all channels have found and the main loop has not taken.
class StepQueue {
 public:
  // `lost` beyond what this queue has no room for.
  void add(std::vector<MarkerRecord>& steps, const monitor::StepLosses& lost) {
    const std::lock_guard lock(mutex_);
    lost_ += lost;
    for (MarkerRecord& step : steps) {
      if (steps_.size() < kMaxWaitingSteps) {
        steps_.push_back(std::move(step));
      } else {
        ++lost_.steps;
      }
    }
    steps.clear();
  }
  void take(std::vector<MarkerRecord>& out) {
    const std::lock_guard lock(mutex_);
    std::move(steps_.begin(), steps_.end(), std::back_inserter(out));
    steps_.clear();
  }
  monitor::StepLosses take_lost() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lost_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<MarkerRecord> steps_;
  monitor::StepLosses lost_;
};

}  // namespace

// Shared with the threads: one that hangs in a write when we leave keeps what it uses.
struct OutputRelay::State {
  State(const Options& options_in, const Clock& clock_in) : options(options_in), clock(clock_in) {}

  void run(std::size_t index);
  // Waits for bytes; false when there will be none.
  bool wait(const OutputChannel& channel) const;
  // Hands bytes on; false when nobody reads them any more.
  bool pass_on(const OutputChannel& channel, std::string_view bytes);
  // Of a channel, by its thread. `is_over`: nobody writes to it or reads it any more.
  void close(std::size_t index, bool is_over);
  // Makes the threads end once nothing is on its way any more.
  void stop() const { signal_event(stopping); }

  Options options;
  const Clock& clock;
  std::vector<OutputChannel> channels;  // stdout, and stderr if it goes elsewhere
  Fd stopping;
  Fd ended;
  std::atomic<std::size_t> open_channels = 0;
  StepQueue steps;
  OutputStandby standby;

  std::mutex mutex;  // guards the closing of a channel, and the error
  std::optional<Error> error;
  bool error_was_taken = false;
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

bool OutputRelay::State::pass_on(const OutputChannel& channel, std::string_view bytes) {
  const Status written = write_all(channel.sink, bytes);
  if (written || written.error().sys_errno == EPIPE) {
    return static_cast<bool>(written);
  }
  // A full disk is no reason to end the command: it goes on, and its steps are still seen.
  const std::lock_guard lock(mutex);
  if (!error) {
    error = written.error();
  }
  return true;
}

void OutputRelay::State::close(std::size_t index, bool is_over) {
  {
    const std::lock_guard lock(mutex);
    channels[index].ours.reset();
  }
  if (is_over || !options.hands_over) {
    standby.drop(index);  // whoever still writes learns that nobody reads
  }
  if (--open_channels == 0) {
    signal_event(ended);
  }
}

void OutputRelay::State::run(std::size_t index) {
  const OutputChannel& channel = channels[index];
  monitor::StepScanner scanner(options.steps);
  std::vector<MarkerRecord> found;
  std::vector<char> buffer(64U << 10U);
  double t_s = 0.0;
  bool is_over = false;
  while (!is_over && wait(channel)) {
    const ssize_t n = ::read(channel.ours.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (n <= 0) {
      is_over = true;  // end of a pipe; EIO: the last process has closed the terminal
      continue;
    }
    // Not after the write: who reads there may be slow, or never read again.
    t_s = to_seconds(clock.monotonic_ns() - options.run_start_ns);
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    is_over = !pass_on(channel, bytes);
    scanner.feed(bytes, t_s, found);
    steps.add(found, scanner.take_lost());
  }
  scanner.end(t_s, found);
  steps.add(found, scanner.take_lost());
  close(index, is_over);
}

OutputRelay::OutputRelay(std::shared_ptr<State> state) : state_(std::move(state)) {}
OutputRelay::~OutputRelay() { leave(); }
OutputRelay::OutputRelay(OutputRelay&&) noexcept = default;

Result<OutputRelay> OutputRelay::open(const Options& options, const Clock& clock) {
  auto state = std::make_shared<State>(options, clock);
  state->stopping.reset(::eventfd(0, EFD_CLOEXEC));
  state->ended.reset(::eventfd(0, EFD_CLOEXEC));
  if (!state->stopping || !state->ended) {
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
  state->standby = OutputStandby::start(state->channels);
  return OutputRelay(std::move(state));
}

int OutputRelay::child_stdout() const { return state_->channels.front().theirs.get(); }
int OutputRelay::child_stderr() const { return state_->channels.back().theirs.get(); }

void OutputRelay::begin() {
  state_->open_channels = state_->channels.size();
  for (std::size_t i = 0; i < state_->channels.size(); ++i) {
    state_->channels[i].theirs.reset();
    threads_.push_back(start_quiet_thread([state = state_, i] { state->run(i); }));
  }
}

void OutputRelay::copy_window_size() {
  const std::lock_guard lock(state_->mutex);
  for (const OutputChannel& channel : state_->channels) {
    channel.copy_window_size();
  }
}

void OutputRelay::take(std::vector<MarkerRecord>& out) { state_->steps.take(out); }
monitor::StepLosses OutputRelay::take_lost() { return state_->steps.take_lost(); }

std::optional<Error> OutputRelay::take_error() {
  const std::lock_guard lock(state_->mutex);
  if (!state_->error || std::exchange(state_->error_was_taken, true)) {
    return std::nullopt;
  }
  return state_->error;
}

bool OutputRelay::at_end() const { return state_->open_channels == 0; }
int OutputRelay::ended_fd() const { return state_->ended.get(); }

void OutputRelay::finish() {
  state_->stop();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

void OutputRelay::leave() {
  if (threads_.empty()) {
    return;
  }
  state_->stop();
  pollfd ended{state_->ended.get(), POLLIN, 0};
  ::poll(&ended, 1, kLeaveMs);
  for (std::thread& thread : threads_) {
    if (at_end()) {
      thread.join();
    } else {
      thread.detach();
    }
  }
  threads_.clear();
}

}  // namespace tidemark::live
