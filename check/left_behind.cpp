// SPDX-License-Identifier: Apache-2.0
#include "check/left_behind.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "common/clock.h"
#include "live/launch/ending.h"
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

// All that is below this process. nullptr: nobody.
struct Below {
  std::unique_ptr<monitor::ProcessSource> source;
  std::unique_ptr<monitor::Session> session;
  std::string problem;
};

Below watch_below(live::WatchSystem& system) {
  Below below;
  auto source = system.open_processes();
  if (!source) {
    below.problem = source.error().what;
    return below;
  }
  below.source = *std::move(source);
  monitor::SessionOptions options = system.session_options();
  options.sampler.roots.children_of = ::getpid();
  options.sampler.pss = monitor::PssMode::kAlways;
  options.start_ns = system.clock().monotonic_ns();
  options.warn = false;
  auto session = monitor::Session::start(std::move(options), *below.source, system.clock());
  if (session) {
    below.session = *std::move(session);
  } else if (session.error().code != Errc::kNotFound) {
    below.problem = session.error().what;
  }
  return below;
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

LeftBehind LeftBehindMeter::measure() const {
  const Clock& clock = system_->clock();
  LeftBehind left;
  reap();
  const Below below = watch_below(*system_);
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
  now.sample(pids_);
  ShmGrowthReport nobodys;
  for (const GrowingSegment& segment : now.report().largest) {
    if (!segment.held.value_or(false)) {  // by a stray: it is in that one's footprint
      nobodys.largest.push_back(segment);
    }
  }
  left.segments = collect::made_by(nobodys, pids_);
  return left;
}

void end_strays(live::WatchSystem& system) {
  const Clock& clock = system.clock();
  const Below below = watch_below(system);
  if (below.session == nullptr) {
    return;
  }
  live::TreeEnding ending(clock.monotonic_ns(), kSettleNs);
  const std::int64_t give_up_ns = clock.monotonic_ns() + 3 * kSettleNs;
  while (!below.session->sampler().finished() && clock.monotonic_ns() < give_up_ns) {
    ending.act(clock.monotonic_ns(), below.session->sampler().members(),
               [&](const ProcessKey& key, int number) { system.send_signal(key, number); });
    system.wait(clock.monotonic_ns() + kPauseNs / 2, {});
    reap();
    (void)below.session->sample(clock.monotonic_ns(), {});
  }
}

}  // namespace tidemark::check
