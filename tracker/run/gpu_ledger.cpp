// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/gpu_ledger.h"

#include <algorithm>
#include <utility>

namespace tidemark::tracker {
namespace {

constexpr double kClockNoiseS = 1e-3;

double number(const std::optional<std::uint64_t>& bytes) {
  return static_cast<double>(bytes.value_or(0));
}

void add(std::optional<double>& sum, const std::optional<double>& part) {
  if (part) {
    sum = sum.value_or(0.0) + *part;
  }
}

}  // namespace

std::optional<GpuLedger::Reading> GpuLedger::take(const Tick& tick) {
  if (tick.gpus.empty()) {
    return std::nullopt;
  }
  // All are read together. A driver that is silent has its last words repeated.
  const double read_s = tick.t_s - tick.gpus.front().age_s;
  if (tick.gpus.front().age_s > 0.0 && read_s <= read_s_ + kClockNoiseS) {
    return std::nullopt;
  }
  read_s_ = read_s;
  Reading reading;
  for (const GpuSample& gpu : tick.gpus) {
    if (gpu.used_bytes) {
      reading.devices_bytes = reading.devices_bytes.value_or(0.0) + number(gpu.used_bytes);
    }
    for (const GpuProcessUse& use : gpu.processes) {
      if (use.used_bytes) {
        reading.by_pid[use.pid] += number(use.used_bytes);
        used_.insert(gpu.index);
      }
    }
  }
  update_limit(tick);
  return reading;
}

void GpuLedger::update_limit(const Tick& tick) {
  const bool knows_users = !used_.empty();
  const std::size_t devices = knows_users ? used_.size() : tick.gpus.size();
  if (devices != 1) {
    limit_bytes_.reset();
    limit_source_.clear();
    return;
  }
  for (const GpuSample& gpu : tick.gpus) {
    if ((knows_users && !used_.contains(gpu.index)) || !gpu.total_bytes) {
      continue;
    }
    double own = knows_users ? 0.0 : number(gpu.used_bytes);
    for (const GpuProcessUse& use : gpu.processes) {
      own += number(use.used_bytes);
    }
    const double others = std::max(number(gpu.used_bytes) - own, 0.0);
    limit_bytes_ = std::max(number(gpu.total_bytes) - number(gpu.reserved_bytes) - others, 0.0);
    limit_source_ = gpu_label(gpu.index) + (others > 0.0 ? ", beside its other users" : "");
  }
}

void TorchLedger::take(const MarkerRecord& gauge) {
  if (gauge.value < 0) {
    return;
  }
  const bool is_allocated = gauge.name == kTorchAllocatedGauge;
  if (!is_allocated && gauge.name != kTorchReservedGauge) {
    return;
  }
  Account& account = accounts_[gauge.key];
  (is_allocated ? account.allocated_bytes : account.reserved_bytes) =
      static_cast<double>(gauge.value);
  if (std::find(news_.begin(), news_.end(), gauge.key) == news_.end()) {
    news_.push_back(gauge.key);
  }
}

std::vector<ProcessKey> TorchLedger::take_news() { return std::exchange(news_, {}); }

TorchLedger::Account TorchLedger::of(const ProcessKey& process) const {
  const auto account = accounts_.find(process);
  return account == accounts_.end() ? Account{} : account->second;
}

TorchLedger::Account TorchLedger::sum() const {
  Account sum;
  for (const auto& [process, account] : accounts_) {
    add(sum.allocated_bytes, account.allocated_bytes);
    add(sum.reserved_bytes, account.reserved_bytes);
  }
  return sum;
}

}  // namespace tidemark::tracker
