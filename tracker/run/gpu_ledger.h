// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/records.h"

namespace tidemark::tracker {

// Adds up what a run's ticks tell of its GPUs.
class GpuLedger {
 public:
  struct Reading {
    std::unordered_map<pid_t, double> by_pid;  // over all devices
    std::optional<double> devices_bytes;       // all that the devices hold
  };
  // nullopt: no figures, or a reading that an earlier tick has had already.
  std::optional<Reading> take(const Tick& tick);

  // What is there for the tree on the GPU that it uses; nullopt unless that is one.
  const std::optional<double>& limit_bytes() const { return limit_bytes_; }
  const std::string& limit_source() const { return limit_source_; }

 private:
  void update_limit(const Tick& tick);

  double read_s_ = -1.0;          // when the figures that were taken last were read
  std::set<std::uint32_t> used_;  // by the tree, at any time
  std::optional<double> limit_bytes_;
  std::string limit_source_;
};

// What torch's allocator says of itself, by the gauges of the processes.
class TorchLedger {
 public:
  struct Account {
    std::optional<double> allocated_bytes;
    std::optional<double> reserved_bytes;
  };

  void take(const MarkerRecord& gauge);
  void forget(const ProcessKey& process) { accounts_.erase(process); }

  // Who has told something since the last call.
  std::vector<ProcessKey> take_news();
  Account of(const ProcessKey& process) const;
  Account sum() const;

 private:
  std::unordered_map<ProcessKey, Account> accounts_;
  std::vector<ProcessKey> news_;
};

}  // namespace tidemark::tracker
