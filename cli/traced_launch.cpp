// SPDX-License-Identifier: Apache-2.0
#include "cli/traced_launch.h"

#include <utility>

#include "cli/profile_preload.h"

namespace tidemark::cli {
namespace {

constexpr std::int64_t kLastNamingNs = 20 * kNsPerSecond;

}  // namespace

Status TracedLaunch::prepare(monitor::LaunchOptions& launch) {
  auto directory = reader::TraceDirectory::create(reader::trace_bases());
  if (!directory) {
    return directory.error();
  }
  auto variables = tracing_environment(options_, directory->path());
  if (!variables) {
    return variables.error();
  }
  directory_.emplace(*std::move(directory));
  launch.environment = *std::move(variables);
  reader::CollectorOptions collecting;
  collecting.directory = directory_->path();
  collecting.start_ns = start_ns_;
  worker_ = std::make_unique<ProfileWorker>(std::move(collecting), options_.watch.interval_ns);
  return ok();
}

void TracedLaunch::begin(const RunInfo& info) {
  command_ = info.command;
  (void)builder_.begin(info);
  if (worker_ != nullptr) {
    worker_->start();
  }
}

void TracedLaunch::complete(Tick& tick) {
  if (worker_ == nullptr) {
    return;
  }
  if (tick.step) {
    worker_->set_step(steps_.add_numbered(*tick.step));
  }
  ProfileNews news = worker_->take();
  tick.allocations = std::move(news.facts);
  for (LossRecord& loss : news.losses) {
    loss.t_s = tick.t_s;
    tick.losses.push_back(std::move(loss));
  }
  problems_.insert(problems_.end(), news.problems.begin(), news.problems.end());
}

void TracedLaunch::finish() {
  if (worker_ != nullptr) {
    worker_->finish(kLastNamingNs, /*put_to_sleep=*/true);
  }
}

std::optional<ProfileReport> TracedLaunch::report() const {
  if (builder_.sites().empty()) {
    return std::nullopt;
  }
  tracker::Options judging;
  judging.warmup = options_.warmup;
  judging.min_leak = options_.min_leak;
  ProfileReport report = make_report(builder_.sites(), judging, options_.top);
  report.command = command_;
  report.coverage.problems.insert(report.coverage.problems.end(), problems_.begin(),
                                  problems_.end());
  return report;
}

}  // namespace tidemark::cli
