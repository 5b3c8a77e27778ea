// SPDX-License-Identifier: Apache-2.0
#include "check/left_behind.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "common/clock.h"
#include "live/launch/ending.h"
#include "live/target.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/session.h"

namespace tidemark::check {
namespace {

constexpr std::int64_t kSettleNs = 2 * kNsPerSecond;
constexpr std::int64_t kPauseNs = kNsPerSecond / 10;

// Orphans of the command that have ended are ours to bury.
void reap() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void note_strays(const Tick& tick, const monitor::Sampler& sampler, LeftBehind& left) {
  left.strays.clear();
  std::uint64_t sum = 0;
  for (const ProcessSample& sample : tick.processes) {
    const ProcessRecord* const record = sampler.find(sample.key);
    if (record == nullptr || sample.state == 'Z' || sample.state == 'X') {
      continue;
    }
    const std::uint64_t bytes =
        sample.pss_footprint_bytes.value_or(sample.footprint_bytes().value_or(0));
    left.strays.push_back({sample.key, record->comm, bytes});
    sum += bytes;
  }
  left.stray_bytes = left.strays.empty() ? 0 : tick.tree.footprint_bytes.value_or(sum);
  std::sort(left.strays.begin(), left.strays.end(),
            [](const Stray& a, const Stray& b) { return a.bytes > b.bytes; });
  if (!tick.gpus.empty()) {
    left.gpu_bytes = 0;
    for (const GpuSample& gpu : tick.gpus) {
      for (const GpuProcessUse& use : gpu.processes) {
        *left.gpu_bytes += use.used_bytes.value_or(0);
      }
    }
  }
}

}  // namespace

LeftBehindMeter::LeftBehindMeter(live::WatchSystem& system)
    : system_(&system), before_(system.session_options().sampler.shm_root) {
  before_.sample({});
}

// What is left of the commands. No session: nobody.
struct LeftBehindMeter::Below {
  std::unique_ptr<monitor::ProcessSource> source;
  std::unique_ptr<monitor::Session> session;
  std::string problem;
};

LeftBehindMeter::Below LeftBehindMeter::watch_below() {
  Below below;
  auto source = system_->open_processes();
  if (!source) {
    below.problem = source.error().what;
    return below;
  }
  below.source = *std::move(source);
  monitor::SessionOptions options = system_->session_options();
  std::erase_if(seen_, [&](const ProcessKey& key) {
    const auto now = monitor::process_key_of(options.sampler.proc_root, key.pid);
    return !now || *now != key;
  });
  options.sampler.roots = live::roots_of_command({}, options.sampler.proc_root);
  options.sampler.roots.keys = seen_;
  options.sampler.pss = monitor::PssMode::kAlways;
  options.start_ns = system_->clock().monotonic_ns();
  options.warn = false;
  auto session = monitor::Session::start(std::move(options), *below.source, system_->clock());
  if (session) {
    below.session = *std::move(session);
  } else if (session.error().code != Errc::kNotFound) {
    below.problem = session.error().what;
  }
  return below;
}

LeftBehind LeftBehindMeter::measure() {
  const Clock& clock = system_->clock();
  LeftBehind left;
  reap();
  const Below below = watch_below();
  left.problem = below.problem;
  const std::int64_t end_ns = clock.monotonic_ns() + kSettleNs;
  while (below.session != nullptr) {
    const Tick tick = below.session->sample(clock.monotonic_ns(), {});
    note_strays(tick, below.session->sampler(), left);
    if (below.session->sampler().finished() || clock.monotonic_ns() >= end_ns) {
      break;
    }
    system_->wait(clock.monotonic_ns() + kPauseNs, {});
    reap();
  }
  if (left.strays.empty() && left.problem.empty()) {
    left.gpu_bytes = 0;  // nobody is left to hold any
  }
  collect::ShmGrowth now = before_;
  now.sample(pids_, segments_);
  ShmGrowthReport nobodys;
  for (const GrowingSegment& segment : now.report().largest) {
    if (!segment.held.value_or(false)) {  // by a stray: it is in that one's footprint
      nobodys.largest.push_back(segment);
    }
  }
  left.segments = collect::made_by(nobodys, pids_);
  return left;
}

void LeftBehindMeter::end_strays() {
  const Clock& clock = system_->clock();
  const Below below = watch_below();
  if (below.session == nullptr) {
    return;
  }
  live::TreeEnding ending(clock.monotonic_ns(), kSettleNs);
  const std::int64_t give_up_ns = clock.monotonic_ns() + 3 * kSettleNs;
  while (!below.session->sampler().finished() && clock.monotonic_ns() < give_up_ns) {
    ending.act(clock.monotonic_ns(), below.session->sampler().members(),
               [&](const ProcessKey& key, int number) { system_->send_signal(key, number); });
    system_->wait(clock.monotonic_ns() + kPauseNs / 2, {});
    reap();
    (void)below.session->sample(clock.monotonic_ns(), {});
  }
}

}  // namespace tidemark::check
