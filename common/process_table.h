// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <unordered_map>

#include "common/records.h"

namespace tidemark {

// Finds the record of a process that is or was in the tree; nullptr when it is unknown.
using ProcessLookup = std::function<const ProcessRecord*(const ProcessKey&)>;

// What is known of each living process, kept up to date from a stream of ticks.
class ProcessTable {
 public:
  void update(const Tick& tick) {
    for (const ProcessRecord& process : tick.new_processes) {
      processes_[process.key] = process;
    }
  }
  void remove(const ProcessKey& key) { processes_.erase(key); }
  // nullptr: never heard of it.
  const ProcessRecord* find(const ProcessKey& key) const {
    const auto known = processes_.find(key);
    return known == processes_.end() ? nullptr : &known->second;
  }

 private:
  std::unordered_map<ProcessKey, ProcessRecord> processes_;
};

}  // namespace tidemark
