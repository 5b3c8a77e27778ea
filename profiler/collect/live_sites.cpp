// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/live_sites.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "profiler/reader/trace_directory.h"

namespace tidemark::collect {
namespace {

// Opening a few files, where there are any.
constexpr double kSearchEveryS = 3.0;

}  // namespace

void LiveSites::complete(Tick& tick) {
  if (worker_ != nullptr && ::access(directory_.c_str(), F_OK) != 0) {
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
  if (!directory) {
    return;
  }
  directory_ = *std::move(directory);
  reader::CollectorOptions collecting;
  collecting.directory = directory_;
  collecting.start_ns = start_ns_;
  collecting.only_looks = true;
  worker_ = std::make_unique<ProfileWorker>(std::move(collecting), interval_ns_);
  worker_->start();
}

}  // namespace tidemark::collect
