// SPDX-License-Identifier: Apache-2.0
#include "monitor/gpu/gpu_watch.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "common/quiet_thread.h"

namespace tidemark::monitor {
namespace {

using Clock = std::chrono::steady_clock;

// For a driver that works to close down, when its figures are no longer wanted.
constexpr std::chrono::milliseconds kStopTimeout{500};

std::atomic<int> g_left_behind = 0;

}  // namespace

struct GpuWatch::Shared {
  std::function<Result<std::unique_ptr<GpuSource>>()> open;

  std::mutex mutex;  // guards all below
  std::condition_variable question;
  std::condition_variable answer;
  bool is_open = false;
  std::optional<Error> open_error;
  std::vector<pid_t> pids;
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
  std::uint64_t given_out = 0;  // up to this answer, losses were told
  std::optional<Result<std::vector<GpuSample>>> last;
  GpuLosses losses;
  Clock::time_point asked_at;  // when the driver was asked for `last`
  bool is_stopping = false;
  bool has_ended = false;
  bool is_left_behind = false;

  void run();
  void answer_questions(GpuSource& source);
};

void GpuWatch::Shared::run() {
  auto source = open();  // may take its time, or for ever
  {
    const std::lock_guard lock(mutex);
    is_open = source.has_value();
    if (!source) {
      open_error = source.error();
    }
  }
  answer.notify_all();
  if (source) {
    answer_questions(**source);
    source->reset();  // closes the driver, which may hang as well
  }
  const std::lock_guard lock(mutex);
  has_ended = true;
  if (is_left_behind) {
    --g_left_behind;
  }
  answer.notify_all();
}

void GpuWatch::Shared::answer_questions(GpuSource& source) {
  std::unique_lock lock(mutex);
  while (true) {
    question.wait(lock, [this] { return is_stopping || asked != answered; });
    if (is_stopping) {
      return;
    }
    const std::uint64_t number = asked;
    const std::vector<pid_t> wanted = pids;
    lock.unlock();
    const Clock::time_point now = Clock::now();
    auto samples = source.sample(wanted);
    lock.lock();
    last.emplace(std::move(samples));
    losses = source.losses();
    asked_at = now;
    answered = number;
    answer.notify_all();
  }
}

GpuWatch::GpuWatch(Options options)
    : shared_(std::make_shared<Shared>()), timeout_(options.timeout) {
  shared_->open = std::move(options.open);
  start_quiet_thread([shared = shared_] { shared->run(); }).detach();
}

GpuWatch::~GpuWatch() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->question.notify_all();
  const bool is_known_to_hang = has_waited_in_vain_ && shared_->asked != shared_->answered;
  const auto timeout = is_known_to_hang ? kStopTimeout / 10 : kStopTimeout;
  if (!shared_->answer.wait_for(lock, timeout, [this] { return shared_->has_ended; })) {
    shared_->is_left_behind = true;
    ++g_left_behind;
  }
}

std::optional<Error> GpuWatch::wait_until_open(std::chrono::milliseconds timeout) {
  std::unique_lock lock(shared_->mutex);
  const bool has_said_something = shared_->answer.wait_for(
      lock, timeout, [this] { return shared_->is_open || shared_->open_error; });
  if (!has_said_something) {
    return Error{Errc::kIo, "the GPU driver does not answer"};
  }
  return shared_->open_error;
}

bool GpuWatch::is_starting() const {
  const std::lock_guard lock(shared_->mutex);
  return !shared_->is_open && !shared_->open_error;
}

Result<std::vector<GpuSample>> GpuWatch::sample(std::span<const pid_t> pids) {
  losses_ = {};
  is_fresh_ = false;
  std::unique_lock lock(shared_->mutex);
  if (shared_->open_error) {
    return *shared_->open_error;
  }
  if (!shared_->is_open) {
    return std::vector<GpuSample>{};
  }
  if (shared_->asked == shared_->answered) {
    shared_->pids.assign(pids.begin(), pids.end());
    ++shared_->asked;
    shared_->question.notify_all();
    has_waited_in_vain_ = false;
  }
  if (!has_waited_in_vain_) {
    is_fresh_ = shared_->answer.wait_for(lock, timeout_,
                                         [this] { return shared_->asked == shared_->answered; });
    has_waited_in_vain_ = !is_fresh_;
  }
  if (!shared_->last) {
    return std::vector<GpuSample>{};
  }
  if (std::exchange(shared_->given_out, shared_->answered) != shared_->answered) {
    losses_ = shared_->losses;
  }
  auto samples = *shared_->last;
  if (samples && !is_fresh_) {
    const std::chrono::duration<double> age = Clock::now() - shared_->asked_at;
    for (GpuSample& gpu : *samples) {
      gpu.age_s = age.count();
    }
  }
  return samples;
}

bool GpuWatch::left_a_thread_behind() { return g_left_behind > 0; }

}  // namespace tidemark::monitor
