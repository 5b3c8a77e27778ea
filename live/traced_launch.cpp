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

Result<std::vector<std::string>> TracedLaunch::attach(const AttachTargets& targets) {
  TIDEMARK_TRY_ASSIGN(auto attached, TreeAttachment::start(targets, options_));
  attached_.emplace(std::move(attached));
  const collect::AttachedProcesses& processes = attached_->processes();
  reader::CollectorOptions collecting;
  collecting.directory = processes.directory();
  collecting.owner = processes.owner();
  collecting.attached = true;
  if (processes.was_there()) {
    collecting.remove_files = false;
    collecting.wake_as = options_.trace.mode;
    collecting.wake_below = targets.roots;
    collecting.sample_every_bytes = options_.trace.sample_every_bytes;
  }
  make_worker(std::move(collecting));
  return attached_->notes();
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
    attached_->add_tick(tick);
    add_attach_problems();
  }
  add_untraced(tick);
}

// The folder stays: its files say to the next attachment that the tracer is there.
void TracedLaunch::detach() {
  std::vector<pid_t> traced;
  for (const tracker::TracedProcess& process : builder_.sites().processes) {
    traced.push_back(process.key.pid);
  }
  attached_->detach(traced);
  add_attach_problems();
}

void TracedLaunch::add_attach_problems() {
  for (std::string& problem : attached_->take_problems()) {
    problems_.push_back(std::move(problem));
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
  if (attached_) {
    report.coverage.growth_explained_share = report::explained_growth(report);
  }
  report.coverage.problems.insert(report.coverage.problems.end(), problems_.begin(),
                                  problems_.end());
  return report;
}

}  // namespace tidemark::live
