// SPDX-License-Identifier: Apache-2.0
#include "live/look_targets.h"

#include <algorithm>
#include <tuple>

namespace tidemark::live {

void LookTargets::add(const Tick& tick) {
  for (const ProcessRecord& process : tick.new_processes) {
    roles_[process.key] = process.role;
  }
}

// Not what starts, compiles or looks after it.
bool LookTargets::does_the_work(const ProcessKey& key) const {
  const auto role = roles_.find(key);
  return role != roles_.end() &&
         (role->second == Role::kTrainer || role->second == Role::kRank ||
          role->second == Role::kDataloaderWorker || role->second == Role::kInference);
}

bool LookTargets::is_wanted(const ProcessSample& sample, bool has_work) const {
  const auto role = roles_.find(sample.key);
  const bool is_named = std::find(options_.named.begin(), options_.named.end(), sample.key.pid) !=
                        options_.named.end();
  return !failed_.contains(sample.key) && sample.state != 'Z' && sample.state != 'X' &&
         (options_.all || does_the_work(sample.key) || is_looked_at(sample.key) ||
          (!has_work && (is_named || role == roles_.end() || role->second == Role::kOther)));
}

// Those of earlier looks first; then the trainer or the ranks before the rest, and the largest
// first.
std::vector<HeapLookThread::Target> LookTargets::of(const Tick& tick) {
  const bool has_work =
      std::any_of(tick.processes.begin(), tick.processes.end(),
                  [&](const ProcessSample& each) { return does_the_work(each.key); });
  std::vector<const ProcessSample*> wanted;
  for (const ProcessSample& sample : tick.processes) {
    if (is_wanted(sample, has_work)) {
      wanted.push_back(&sample);
    }
  }
  const auto rank = [&](const ProcessSample* sample) {
    const auto role = roles_.find(sample->key);
    const bool is_main =
        role != roles_.end() && (role->second == Role::kTrainer || role->second == Role::kRank);
    return std::tuple(is_looked_at(sample->key), is_main, sample->footprint_bytes().value_or(0));
  };
  std::stable_sort(
      wanted.begin(), wanted.end(),
      [&](const ProcessSample* a, const ProcessSample* b) { return rank(a) > rank(b); });
  left_out_ = wanted.size() > options_.most ? wanted.size() - options_.most : 0;
  wanted.resize(std::min(wanted.size(), options_.most));
  std::vector<HeapLookThread::Target> targets;
  for (const ProcessSample* sample : wanted) {
    looked_.insert(sample->key);
    targets.push_back({sample->key, sample->footprint_bytes()});
  }
  return targets;
}

}  // namespace tidemark::live
