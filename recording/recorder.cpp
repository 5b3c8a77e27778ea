// SPDX-License-Identifier: Apache-2.0
#include "recording/recorder.h"

#include <algorithm>
#include <utility>

#include "common/quiet_thread.h"

namespace tidemark::recording {

Recorder::Recorder(std::unique_ptr<RunWriter> writer, RecorderOptions options)
    : writer_(std::move(writer)), options_(options), waiting_(options.max_bytes / 4) {}

Recorder::~Recorder() { finish(std::nullopt); }

Status Recorder::begin(const RunInfo& info) {
  TIDEMARK_TRY(writer_->begin(info));
  thread_ = start_quiet_thread([this] { run(); });
  return ok();
}

Status Recorder::add(const Tick& tick) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) {
      ++stats_.ticks_dropped;
      return ok();
    }
    if (!has_room_for(approximate_bytes(tick))) {
      ++stats_.ticks_dropped;
      waiting_.add_dropped(tick);
      return ok();
    }
  }
  // Only this thread fills the queue: the room cannot be gone by now.
  Tick copy = tick;
  waiting_.move_into(copy);
  push(std::move(copy));
  return ok();
}

Status Recorder::process_ended(const ProcessRecord& process) {
  waiting_.add_ended(process);
  return ok();
}

Status Recorder::end(double t_s) {
  finish(t_s);
  const std::lock_guard lock(mutex_);
  return failure_ ? Status(*failure_) : ok();
}

std::optional<Error> Recorder::take_error() {
  const std::lock_guard lock(mutex_);
  if (!failure_ || std::exchange(failure_was_taken_, true)) {
    return std::nullopt;
  }
  return failure_;
}

RecorderStats Recorder::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

// One tick always fits, however large it is.
bool Recorder::has_room_for(std::size_t bytes) const {
  return queue_.empty() ||
         (queue_.size() < options_.max_ticks && queued_bytes_ + bytes <= options_.max_bytes);
}

void Recorder::push(Tick tick) {
  Item item{waiting_.take_ended(), std::move(tick), 0, clock_.monotonic_ns()};
  item.bytes = approximate_bytes(item.tick);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) {  // since add() looked
      ++stats_.ticks_dropped;
      return;
    }
    queued_bytes_ += item.bytes;
    queue_.push_back(std::move(item));
  }
  wake_.notify_one();
}

void Recorder::finish(std::optional<double> end_s) {
  if (!thread_.joinable()) {
    return;
  }
  if (auto last = waiting_.take_last_dropped()) {
    {
      const std::lock_guard lock(mutex_);
      --stats_.ticks_dropped;
    }
    push(std::move(*last));
  }
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (!end_s || failure_) {  // the thread is gone: no lock needed
    return;
  }
  Status status = write_ended(waiting_.take_ended());
  if (status) {
    status = writer_->end(*end_s);
  }
  if (!status) {
    fail(status.error(), /*lost_ticks=*/0);
  }
}

void Recorder::run() {
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
      if (queue_.empty()) {
        return;
      }
      item = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= item.bytes;
    }
    if (const Status status = write(item); !status) {
      fail(status.error(), /*lost_ticks=*/1);
      return;
    }
  }
}

Status Recorder::write(const Item& item) {
  Status status = write_ended(item.ended);
  if (status) {
    status = writer_->add(item.tick);
  }
  if (!status) {
    return status;
  }
  const double late_s = to_seconds(clock_.monotonic_ns() - item.added_ns);
  writer_->set_write_late_s(late_s);
  const std::lock_guard lock(mutex_);
  ++stats_.ticks_written;
  stats_.max_write_late_s = std::max(stats_.max_write_late_s, late_s);
  return status;
}

Status Recorder::write_ended(const std::vector<ProcessRecord>& ended) {
  for (const ProcessRecord& process : ended) {
    TIDEMARK_TRY(writer_->process_ended(process));
  }
  return ok();
}

void Recorder::fail(const Error& error, std::uint64_t lost_ticks) {
  const std::lock_guard lock(mutex_);
  failure_ = error;
  stats_.ticks_dropped += queue_.size() + lost_ticks;
  queue_.clear();
  queued_bytes_ = 0;
}

}  // namespace tidemark::recording
