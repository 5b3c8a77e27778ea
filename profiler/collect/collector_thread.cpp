// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/collector_thread.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/quiet_thread.h"
#include "profiler/reader/trace_directory.h"

namespace tidemark::collect {
namespace {

// How finely ages are told apart from outside.
constexpr std::int64_t kEpochNs = kNsPerSecond / 5;
// Between two samples of /dev/shm: the more often the younger the run is.
constexpr std::int64_t kShmLeastNs = kNsPerSecond;
constexpr std::int64_t kShmMostNs = 5 * kNsPerSecond;

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// A tick has one sample of a process: of two that wait for it the later one counts, live as in a
// file.
void forget_what_is_old(AllocationFacts& waiting, const AllocationFacts& now) {
  std::unordered_set<std::uint32_t> sampled;
  for (const SiteSample& sample : now.samples) {
    sampled.insert(sample.site);
  }
  std::erase_if(waiting.samples, [&](const SiteSample& old) { return sampled.contains(old.site); });
  std::erase_if(waiting.traces, [&](const TraceSample& old) {
    return !old.has_ended && std::any_of(now.traces.begin(), now.traces.end(),
                                         [&](const TraceSample& t) { return t.key == old.key; });
  });
  std::erase_if(waiting.ages, [&](const SiteAges& old) {
    return std::any_of(now.ages.begin(), now.ages.end(),
                       [&](const SiteAges& ages) { return ages.site == old.site; });
  });
  std::erase_if(waiting.accounts, [&](const MemoryAccount& old) {
    return std::any_of(now.accounts.begin(), now.accounts.end(),
                       [&](const MemoryAccount& account) { return account.key == old.key; });
  });
}

bool has_another_image(const AllocationFacts& waiting, const AllocationFacts& later) {
  return std::any_of(waiting.traces.begin(), waiting.traces.end(), [&](const TraceSample& old) {
    return old.has_ended && std::any_of(later.traces.begin(), later.traces.end(),
                                        [&](const TraceSample& t) { return t.key == old.key; });
  });
}

void append_facts(AllocationFacts& waiting, AllocationFacts& later) {
  forget_what_is_old(waiting, later);
  append(waiting.modules, std::move(later.modules));
  append(waiting.frames, std::move(later.frames));
  append(waiting.sites, std::move(later.sites));
  append(waiting.samples, std::move(later.samples));
  append(waiting.ages, std::move(later.ages));
  append(waiting.traces, std::move(later.traces));
  append(waiting.accounts, std::move(later.accounts));
}

// Opening a few files, where there are any.
constexpr double kSearchEveryS = 3.0;

}  // namespace

bool merge_facts(AllocationFacts& waiting, AllocationFacts& later) {
  if (has_another_image(waiting, later)) {
    return false;
  }
  append_facts(waiting, later);
  return true;
}

ProfileWorker::ProfileWorker(reader::CollectorOptions options, std::int64_t interval_ns)
    : interval_ns_(interval_ns),
      world_(reader::make_trace_world()),
      collector_(std::move(options), *world_, clock_) {}

ProfileWorker::~ProfileWorker() { finish(0, /*put_to_sleep=*/false); }

void ProfileWorker::start() {
  // What a pass needs is large and soon freed. Left alone, glibc raises this limit to the largest
  // block that was freed, and keeps all that is smaller from then on.
  constexpr int kMappedFromBytes = 128 << 10;
  (void)::mallopt(M_MMAP_THRESHOLD, kMappedFromBytes);  // it may stay as it is
  thread_ = start_quiet_thread([this] { run(); });
}

void ProfileWorker::set_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(step, 0, INT32_MAX));
}

void ProfileWorker::add_process(pid_t pid) {
  const std::lock_guard lock(mutex_);
  pids_.insert(pid);
}

ProfileNews ProfileWorker::take() {
  const std::lock_guard lock(mutex_);
  ProfileNews news = std::exchange(news_, {});
  while (!waiting_.empty()) {
    if (!merge_facts(news.facts, waiting_.front())) {
      if (!is_stopping_) {
        break;  // for the next tick
      }
      append_facts(news.facts, waiting_.front());  // there is no next one
    }
    waiting_.pop_front();
  }
  return news;
}

void ProfileWorker::finish(std::int64_t naming_budget_ns, bool put_to_sleep) {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  world_->wait_until(clock_.monotonic_ns() + naming_budget_ns);
  thread_.join();
  naming_budget_ns_ = naming_budget_ns;
  collect(/*is_last=*/true);
  sample_shm();
  if (put_to_sleep) {
    collector_.put_to_sleep();
  }
}

void ProfileWorker::run() {
  const std::int64_t begun_ns = clock_.monotonic_ns();
  std::int64_t next_pass_ns = begun_ns + interval_ns_ / 2;
  std::int64_t next_shm_ns = begun_ns + kShmLeastNs;
  while (true) {
    std::optional<std::uint32_t> step;
    {
      std::unique_lock lock(mutex_);
      const std::int64_t pause_ns =
          std::clamp<std::int64_t>(next_pass_ns - clock_.monotonic_ns(), 0, kEpochNs);
      wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [this] { return is_stopping_; });
      if (is_stopping_) {
        return;
      }
      step = step_;
    }
    collector_.set_epoch(step);
    const std::int64_t now_ns = clock_.monotonic_ns();
    if (now_ns >= next_pass_ns) {
      collect(/*is_last=*/false);
      const std::int64_t late_ns = clock_.monotonic_ns() - next_pass_ns;
      next_pass_ns += (late_ns / interval_ns_ + 1) * interval_ns_;
    }
    if (now_ns >= next_shm_ns) {
      sample_shm();
      next_shm_ns =
          clock_.monotonic_ns() + std::clamp((now_ns - begun_ns) / 32, kShmLeastNs, kShmMostNs);
    }
  }
}

void ProfileWorker::collect(bool is_last) {
  AllocationFacts facts;
  if (is_last) {
    collector_.finish(facts, naming_budget_ns_);
  } else {
    collector_.collect(facts);
  }
  auto problems = collector_.take_problems();
  auto losses = collector_.take_losses();
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(facts));
  append(news_.problems, std::move(problems));
  append(news_.losses, std::move(losses));
}

void ProfileWorker::sample_shm() {
  PidSet pids;
  {
    const std::lock_guard lock(mutex_);
    pids = pids_;
  }
  if (shm_.sample(pids)) {
    const std::lock_guard lock(mutex_);
    news_.facts.shm = made_by(shm_.report(), pids);
  }
}

void LiveSites::complete(Tick& tick) {
  if (worker_ != nullptr &&
      (::access(directory_.c_str(), F_OK) != 0 || reader::trace_folder_is_left(directory_))) {
    worker_.reset();
    has_ended_ = true;
  }
  if (worker_ == nullptr) {
    look_for_a_tracer(tick);
    return;
  }
  ProfileNews news = worker_->take();
  tick.allocations = std::move(news.facts);
  for (LossRecord& loss : news.losses) {
    loss.t_s = tick.t_s;
    tick.losses.push_back(std::move(loss));
  }
}

void LiveSites::look_for_a_tracer(const Tick& tick) {
  if (tick.t_s < next_search_s_) {
    return;
  }
  next_search_s_ = tick.t_s + kSearchEveryS;
  std::vector<pid_t> pids;
  for (const ProcessSample& sample : tick.processes) {
    pids.push_back(sample.key.pid);
  }
  auto directory = reader::find_trace_of_any(pids, reader::trace_bases());
  if (!directory || reader::trace_folder_is_left(*directory)) {
    return;
  }
  directory_ = *std::move(directory);
  reader::CollectorOptions collecting;
  collecting.directory = directory_;
  collecting.start_ns = start_ns_;
  collecting.read_only = true;
  worker_ = std::make_unique<ProfileWorker>(std::move(collecting), interval_ns_);
  worker_->start();
}

}  // namespace tidemark::collect
