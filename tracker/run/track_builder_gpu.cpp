// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <vector>

#include "tracker/run/track_builder.h"

namespace tidemark::tracker {

void TrackBuilder::add_gpus(const Tick& tick) {
  const auto reading = gpu_.take(tick);
  if (!reading) {
    return;
  }
  run_.gpu_limit_bytes = gpu_.limit_bytes();
  run_.gpu_limit_source = gpu_.limit_source();
  if (reading->devices_bytes) {
    put(*tree_, Metric::kGpuDevice, *reading->devices_bytes);
  }
  const auto& by_pid = reading->by_pid;
  if (by_pid.empty()) {
    return;
  }
  double total = 0.0;
  std::array<std::optional<double>, kRoleCount> by_role{};
  for (const ProcessSample& sample : tick.processes) {
    const auto use = by_pid.find(sample.key.pid);
    if (use == by_pid.end()) {
      continue;
    }
    const Known& process = know(sample.key);
    if (process.track != kNoTrack) {
      put(process.track, Metric::kGpu, use->second);
    }
    auto& role = by_role[static_cast<std::size_t>(process.role)];
    role = role.value_or(0.0) + use->second;
    total += use->second;
  }
  put(*tree_, Metric::kGpu, total);
  for (std::size_t i = 0; i < by_role.size(); ++i) {
    if (by_role[i]) {
      put(track_of_role(static_cast<Role>(i)), Metric::kGpu, *by_role[i]);
    }
  }
}

void TrackBuilder::add_torch() {
  const auto put_account = [this](std::size_t track, const TorchLedger::Account& account) {
    if (account.allocated_bytes) {
      put(track, Metric::kTorchAllocated, *account.allocated_bytes);
    }
    if (account.reserved_bytes) {
      put(track, Metric::kTorchReserved, *account.reserved_bytes);
    }
  };
  const std::vector<ProcessKey> news = torch_.take_news();
  for (const ProcessKey& key : news) {
    if (const std::size_t track = know(key).track; track != kNoTrack) {
      put_account(track, torch_.of(key));
    }
  }
  if (!news.empty()) {
    put_account(*tree_, torch_.sum());
  }
}

}  // namespace tidemark::tracker
