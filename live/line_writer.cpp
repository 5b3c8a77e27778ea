// SPDX-License-Identifier: Apache-2.0
#include "live/line_writer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "common/check.h"
#include "common/fd.h"
#include "common/io.h"
#include "common/quiet_thread.h"

namespace tidemark::live {

struct LineWriter::State {
  void run();
  // Waits for the next text; nullopt when there will be none.
  std::optional<std::string> next();
  void push(std::string lines, bool always);

  int fd = -1;
  std::size_t max_waiting_bytes = 0;
  Fd ended;

  mutable std::mutex mutex;  // guards all below; never held while writing
  std::condition_variable wake;
  std::deque<std::string> waiting;
  std::size_t waiting_bytes = 0;
  std::uint64_t dropped = 0;
  bool is_closed = false;
  std::optional<Error> error;
};

std::optional<std::string> LineWriter::State::next() {
  std::unique_lock lock(mutex);
  wake.wait(lock, [this] { return is_closed || !waiting.empty(); });
  if (waiting.empty()) {
    return std::nullopt;
  }
  std::string lines = std::move(waiting.front());
  waiting.pop_front();
  waiting_bytes -= lines.size();
  return lines;
}

void LineWriter::State::run() {
  while (const auto lines = next()) {
    if (const Status written = write_all(fd, *lines); !written) {
      const std::lock_guard lock(mutex);
      error = written.error();
      break;
    }
  }
  const std::uint64_t one = 1;
  TIDEMARK_CHECK(::write(ended.get(), &one, sizeof one) == sizeof one,
                 "an eventfd takes a small number");
}

void LineWriter::State::push(std::string lines, bool always) {
  {
    const std::lock_guard lock(mutex);
    if (error) {
      return;
    }
    if (!always && !waiting.empty() && waiting_bytes + lines.size() > max_waiting_bytes) {
      dropped += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
      return;
    }
    waiting_bytes += lines.size();
    waiting.push_back(std::move(lines));
  }
  wake.notify_one();
}

LineWriter::LineWriter(std::shared_ptr<State> state)
    : state_(std::move(state)), thread_(start_quiet_thread([state = state_] { state->run(); })) {}

Result<LineWriter> LineWriter::open(int fd, std::size_t max_waiting_bytes) {
  auto state = std::make_shared<State>();
  state->fd = fd;
  state->max_waiting_bytes = max_waiting_bytes;
  state->ended.reset(::eventfd(0, EFD_CLOEXEC));
  if (!state->ended) {
    return system_error("cannot make an eventfd", errno);
  }
  return LineWriter(std::move(state));
}

LineWriter::~LineWriter() {
  if (!thread_.joinable()) {
    return;  // moved from
  }
  close();
  pollfd ended{state_->ended.get(), POLLIN, 0};
  if (::poll(&ended, 1, 0) > 0) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void LineWriter::submit(std::string lines) { state_->push(std::move(lines), /*always=*/false); }
void LineWriter::submit_always(std::string lines) {
  state_->push(std::move(lines), /*always=*/true);
}

std::uint64_t LineWriter::take_dropped() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->dropped, 0);
}

void LineWriter::close() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_closed = true;
  }
  state_->wake.notify_one();
}

int LineWriter::ended_fd() const { return state_->ended.get(); }

std::optional<Error> LineWriter::error() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

}  // namespace tidemark::live
