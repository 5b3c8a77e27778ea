// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "common/io.h"
#include "guard/self_protection.h"
#include "monitor/procfs/process_signal.h"

namespace tidemark::guard {
namespace {

constexpr std::int64_t kPressureEveryNs = kNsPerSecond;

Result<Fd> make_eventfd() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) {
    return system_error("cannot make an event descriptor", errno);
  }
  return fd;
}

void ring(const Fd& bell) {
  const std::uint64_t one = 1;
  // It can only fail when 2^64 - 2 are waiting to be read.
  [[maybe_unused]] const ssize_t written = ::write(bell.get(), &one, sizeof one);
}

void silence(const Fd& bell) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(bell.get(), &count, sizeof count);
}

}  // namespace

Result<std::unique_ptr<GuardThread>> GuardThread::create(const GuardThreadOptions& options) {
  auto killer = TreeKiller::open(options.killer);
  if (!killer) {
    return killer.error();
  }
  std::unique_ptr<GuardThread> guard_thread(new GuardThread(options, *std::move(killer)));
  auto proc = open_file(options.killer.proc_root, O_RDONLY | O_DIRECTORY);
  auto news = make_eventfd();
  auto wake = make_eventfd();
  if (!proc || !news || !wake) {
    return !proc ? proc.error() : (!news ? news.error() : wake.error());
  }
  guard_thread->proc_ = *std::move(proc);
  guard_thread->news_ = *std::move(news);
  guard_thread->wake_ = *std::move(wake);
  return guard_thread;
}

GuardThread::GuardThread(const GuardThreadOptions& options, TreeKiller killer)
    : options_(options), killer_(std::move(killer)), policy_(options.settings, options.dry_run) {}

GuardThread::~GuardThread() { stop(); }

Result<std::vector<std::string>> GuardThread::start() {
  std::vector<std::string> notes;
  for (const TreeKiller::Region& region : killer_.regions()) {
    (void)lock_region(region.begin, region.bytes);  // a note is made of it where all is locked
  }
  (void)lock_region(this, sizeof *this);
  stack_ = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_POPULATE, -1, 0);
  if (stack_ == MAP_FAILED) {
    stack_ = nullptr;
    return system_error("no stack for the thread that acts", errno);
  }
  (void)lock_region(stack_, kStackBytes);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, stack_, kStackBytes);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = ::pthread_create(&thread, &attributes, run, this);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) {
    return system_error("cannot start the thread that acts", error);
  }
  thread_ = thread;
  ::pthread_setname_np(thread, "guard_thread");
  const sched_param priority{1};
  if (::pthread_setschedparam(thread, SCHED_RR, &priority) != 0) {
    notes.emplace_back("no real-time priority: the guard may be late on a busy machine");
  }
  return notes;
}

void GuardThread::stop() {
  if (thread_) {
    told_to_stop_ = true;
    ring(wake_);
    ::pthread_join(*thread_, nullptr);
    thread_.reset();
  }
  if (stack_ != nullptr) {
    ::munmap(stack_, kStackBytes);
    stack_ = nullptr;
  }
}

void* GuardThread::run(void* self) {
  GuardThread& guard_thread = *static_cast<GuardThread*>(self);
  while (!guard_thread.told_to_stop_) {
    const std::int64_t wait_ns = guard_thread.look();
    pollfd wake{guard_thread.wake_.get(), POLLIN, 0};
    const timespec timeout{wait_ns / kNsPerSecond, wait_ns % kNsPerSecond};
    if (::ppoll(&wake, 1, &timeout, nullptr) > 0) {
      silence(guard_thread.wake_);
    }
  }
  return nullptr;
}

void GuardThread::post(std::unique_ptr<GuardTargets> list) {
  std::unique_ptr<GuardTargets> old;
  std::unique_ptr<GuardTargets> unseen;
  {
    const std::lock_guard lock(mutex_);
    old = std::move(retired_);
    unseen = std::exchange(incoming_, std::move(list));
  }
  ring(wake_);  // it may say that there is less time than was thought
}

void GuardThread::take_list() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && incoming_ != nullptr) {
    retired_ = std::exchange(list_, std::move(incoming_));
  }
}

bool GuardThread::any_runs(std::span<const ProcessKey> keys) const {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const ProcessKey& key) { return monitor::is_running(proc_.get(), key); });
}

std::optional<double> GuardThread::read_pressure(std::int64_t now_ns) {
  if (now_ns >= next_pressure_ns_) {
    pressure_ = list_->limits->pressure();
    next_pressure_ns_ = now_ns + kPressureEveryNs;
  }
  return pressure_;
}

std::int64_t GuardThread::look() {
  take_list();
  const std::int64_t now_ns = clock_.monotonic_ns();
  looks_.fetch_add(1, std::memory_order_relaxed);
  if (list_ == nullptr || list_->limits == nullptr) {
    show(now_ns, {});
    return policy_.next_look_ns({});
  }
  GuardSight sight;
  sight.now_ns = now_ns;
  sight.headroom = list_->limits->read(&list_->tree);
  // The leak of those that have ended is over; whoever trains next comes with another list.
  sight.leak = list_->leak && any_runs(list_->trainers) ? list_->leak : std::nullopt;
  sight.pressure_percent = read_pressure(now_ns);
  sight.trainers_alive = policy_.stage() != GuardStage::kStopping ||
                         any_runs(std::span(signalled_).first(signalled_count_));
  sight.tree_alive = tree_alive_;
  GuardDecision decision = policy_.decide(sight);
  const bool has_newcomer = policy_.stage() == GuardStage::kStopping &&
                            decision.act == GuardAct::kNothing &&
                            std::any_of(list_->trainers.begin(), list_->trainers.end(),
                                        [&](const ProcessKey& key) { return !was_signalled(key); });
  if (has_newcomer) {  // only now recognised, or started again by a launcher: it must stop too
    decision = last_stop_;
    decision.headroom = sight.headroom;
  }
  if (decision.act != GuardAct::kNothing) {
    GuardReport made;
    made.decision = decision;
    made.wall_ns = clock_.wall_ns();
    act(decision, made);
    made.took_ns = clock_.monotonic_ns() - now_ns;
    // A kill is repeated until nobody is left, and told of once.
    const bool is_again = decision.act == GuardAct::kKill && std::exchange(told_of_kill_, true);
    if (!is_again) {
      report(made);
    }
  }
  show(now_ns, sight.headroom);
  return policy_.next_look_ns(sight.headroom);
}

void GuardThread::act(const GuardDecision& decision, GuardReport& report) {
  switch (decision.act) {
    case GuardAct::kStop:
      last_stop_ = decision;
      tree_alive_ = true;
      told_of_kill_ = false;
      send_signal(report);
      break;
    case GuardAct::kKill:
      if (options_.dry_run) {
        tree_alive_ = false;   // as if
        signalled_count_ = 0;  // the next time all of it is told again
        break;
      }
      if (list_->group.kill && killer_.owns_group(list_->group.procs, list_->members)) {
        report.group_killed = ::write(list_->group.kill.get(), "1", 1) == 1;
      }
      report.kill = killer_.kill(list_->members);
      tree_alive_ = report.kill.left > report.kill.refused;
      break;
    case GuardAct::kStandDown:
      signalled_count_ = 0;
      break;
    case GuardAct::kWarn:
    case GuardAct::kNothing:
      break;
  }
}

bool GuardThread::was_signalled(const ProcessKey& key) const {
  const auto* const end = signalled_.begin() + signalled_count_;
  return std::find(signalled_.begin(), end, key) != end || signalled_count_ == signalled_.size();
}

// Each trainer gets it once.
void GuardThread::send_signal(GuardReport& report) {
  for (const ProcessKey& key : list_->trainers) {
    if (was_signalled(key)) {
      continue;
    }
    signalled_[signalled_count_++] = key;
    const int error =
        options_.dry_run ? 0 : monitor::signal_process(proc_.get(), key, options_.signal_number);
    if (error != 0) {
      ++report.not_signalled;
      report.signal_errno = error;
      continue;
    }
    if (report.signalled < report.trainers.size()) {
      report.trainers[report.signalled] = key.pid;
    }
    ++report.signalled;
  }
}

void GuardThread::report(const GuardReport& made) {
  const std::uint32_t at = reports_written_.load(std::memory_order_relaxed);
  if (at - reports_read_.load(std::memory_order_acquire) == kMostReports) {
    return;  // nobody has listened for 64 actions
  }
  reports_[at % kMostReports] = made;
  reports_written_.store(at + 1, std::memory_order_release);
  ring(news_);
}

std::optional<GuardReport> GuardThread::take_report() {
  const std::uint32_t at = reports_read_.load(std::memory_order_relaxed);
  if (at == reports_written_.load(std::memory_order_acquire)) {
    silence(news_);
    if (at == reports_written_.load(std::memory_order_acquire)) {
      return std::nullopt;
    }
  }
  const GuardReport made = reports_[at % kMostReports];
  reports_read_.store(at + 1, std::memory_order_release);
  return made;
}

void GuardThread::show(std::int64_t now_ns, const std::optional<Headroom>& headroom) {
  seen_free_bytes_.store(headroom ? headroom->free_bytes : INT64_MIN, std::memory_order_relaxed);
  seen_stage_.store(policy_.stage(), std::memory_order_relaxed);
  seen_at_ns_.store(now_ns, std::memory_order_release);
}

GuardThread::LastCheck GuardThread::last_check() const {
  LastCheck last;
  last.at_ns = seen_at_ns_.load(std::memory_order_acquire);
  last.stage = seen_stage_.load(std::memory_order_relaxed);
  const std::int64_t free = seen_free_bytes_.load(std::memory_order_relaxed);
  if (free != INT64_MIN) {
    last.free_bytes = free;
  }
  return last;
}

}  // namespace tidemark::guard
