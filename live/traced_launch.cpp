// SPDX-License-Identifier: Apache-2.0
#include "live/traced_launch.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "profiler/collect/preload.h"

namespace tidemark::live {
namespace {

// The last stacks are named while the user waits.
constexpr std::int64_t kLastNamingNs = 20 * kNsPerSecond;

}  // namespace

void TracedLaunch::make_worker(reader::CollectorOptions collecting) {
  collecting.start_ns = start_ns_;
  place_.directory = collecting.directory;
  place_.follows_children = options_.trace.follow_children;
  worker_ =
      std::make_unique<collect::ProfileWorker>(std::move(collecting), options_.watch.interval_ns);
  worker_->remember_shm();
}

Status TracedLaunch::prepare(LaunchOptions& launch) {
  TIDEMARK_TRY_ASSIGN(auto directory, reader::TraceDirectory::create(reader::trace_bases()));
  TIDEMARK_TRY_ASSIGN(place_.library, collect::find_tracer());
  TIDEMARK_TRY_ASSIGN(launch.environment,
                      collect::tracing_environment(options_.trace, options_.watch.target.command,
                                                   directory.path()));
  directory_.emplace(std::move(directory));
  reader::CollectorOptions collecting;
  collecting.directory = directory_->path();
  make_worker(std::move(collecting));
  return ok();
}

void TracedLaunch::wake(reader::CollectorOptions& collecting, pid_t pid) const {
  collecting.remove_files = false;
  collecting.wake_as = options_.trace.mode;
  collecting.wake_below = pid;
  collecting.sample_every_bytes = options_.trace.sample_every_bytes;
}

Status TracedLaunch::wake_in(const std::string& directory, pid_t pid) {
  auto adopted = reader::adopt_trace_folder(directory);
  if (adopted) {
    adopted_ = *std::move(adopted);
  } else if (adopted.error().sys_errno == EWOULDBLOCK) {
    // We would put it to sleep at our end, and the other one would take that for the end of growth.
    return Error{Errc::kUnsupported, "another tidemark profiles it now"};
  }
  reader::CollectorOptions collecting;
  collecting.directory = directory;
  wake(collecting, pid);
  make_worker(std::move(collecting));
  auto again = collect::AttachedProcesses::attach_again(pid, options_.attach_timeout_ns);
  if (again) {
    attached_.emplace(*std::move(again));
  } else if (again.error().code != Errc::kNotFound) {
    problems_.push_back(again.error().what);
  }
  return ok();
}

Result<std::string> TracedLaunch::attach(pid_t pid) {
  const std::int64_t begun_ns = SystemClock().monotonic_ns();
  TIDEMARK_TRY_ASSIGN(auto attached, collect::AttachedProcesses::attach(
                                         pid, options_.trace, options_.attach_timeout_ns));
  attached_.emplace(std::move(attached));
  reader::CollectorOptions collecting;
  collecting.directory = attached_->directory()->path();
  collecting.owner = attached_->directory()->owner();
  collecting.attached = true;
  if (attached_->was_there()) {
    wake(collecting, pid);
  }
  make_worker(std::move(collecting));
  problems_.push_back(fmt::format(
      "pid {} ran before the tracer came: what it allocated until then is in no line", pid));
  return collect::attach_text(pid, attached_->figures(), SystemClock().monotonic_ns() - begun_ns);
}

Status TracedLaunch::begin(const RunInfo& info) {
  command_ = info.command;
  if (worker_ != nullptr) {
    worker_->start();
  }
  return builder_.begin(info);
}

void TracedLaunch::complete(Tick& tick) {
  if (worker_ == nullptr) {
    return;
  }
  if (tick.step) {
    worker_->set_step(steps_.add_numbered(*tick.step));
  }
  for (const ProcessRecord& process : tick.new_processes) {
    worker_->add_process(process.key.pid);
  }
  collect::ProfileNews news = worker_->take();
  tick.allocations = std::move(news.facts);
  for (LossRecord& loss : news.losses) {
    loss.t_s = tick.t_s;
    tick.losses.push_back(std::move(loss));
  }
  problems_.insert(problems_.end(), news.problems.begin(), news.problems.end());
  if (attached_) {
    attach_to_more(tick);
  }
  add_untraced(tick);
}

// What the tree has besides the process that was attached to first, as far as it is wanted.
void TracedLaunch::attach_to_more(const Tick& tick) {
  const auto is_wanted = [&](const ProcessRecord& process) {
    const AttachScope& scope = options_.scope;
    return scope.all || process.role == scope.role.value_or(Role::kRank);
  };
  for (const ProcessRecord& process : tick.new_processes) {
    const pid_t pid = process.key.pid;
    if (!is_wanted(process) || attached_->directory() == nullptr || attached_->is_traced(pid)) {
      continue;
    }
    if (const Status added = attached_->add(pid); !added) {
      problems_.push_back(fmt::format("pid {} is not traced: {}", pid, added.error().what));
    }
  }
  for (std::string& problem : attached_->hook_new_modules()) {
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) {
      problems_.push_back(std::move(problem));
    }
  }
}

// The folder stays: its files say to the next attachment that the tracer is there.
void TracedLaunch::detach() {
  std::vector<pid_t> traced;
  for (const tracker::TracedProcess& process : builder_.sites().processes) {
    traced.push_back(process.key.pid);
  }
  for (std::string& problem : attached_->detach(traced)) {
    problems_.push_back(std::move(problem));
  }
  if (reader::TraceDirectory* const directory = attached_->directory()) {
    directory->keep();
  }
}

// Asked while they run, and not at their first sample: the tracer needs a moment.
void TracedLaunch::add_untraced(Tick& tick) const {
  const auto is_traced = [&](const ProcessKey& key) {
    const std::vector<TraceSample>& traces = tick.allocations.traces;
    return std::any_of(traces.begin(), traces.end(),
                       [&](const TraceSample& trace) { return trace.key == key; });
  };
  for (const ProcessSample& sample : tick.processes) {
    if (!builder_.sites().untraced.lacks_reason(sample.key) || is_traced(sample.key)) {
      continue;
    }
    const UntracedReason reason = collect::why_untraced(sample.key.pid, place_);
    if (reason != UntracedReason::kUnknown) {
      tick.allocations.untraced.push_back({sample.key, reason});
    }
  }
}

bool TracedLaunch::finish() {
  if (worker_ == nullptr) {
    return false;
  }
  if (attached_) {
    detach();
  }
  worker_->finish(kLastNamingNs, /*put_to_sleep=*/true);
  directory_.reset();  // whom the command starts from now on looks for it in vain
  return true;
}

report::ProfileReport TracedLaunch::report() const {
  report::ProfileReport report =
      report::make_report(builder_.sites(), options_.judge, options_.top);
  report.command = command_;
  report.coverage.problems.insert(report.coverage.problems.end(), problems_.begin(),
                                  problems_.end());
  return report;
}

}  // namespace tidemark::live
