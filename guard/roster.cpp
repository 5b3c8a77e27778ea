// SPDX-License-Identifier: Apache-2.0
#include "guard/roster.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace tidemark::guard {
namespace {

bool is_trainer(Role role) { return role == Role::kTrainer || role == Role::kRank; }

// Roles that hold no training state: the signal would be wasted on them, or misunderstood.
bool is_helper(Role role) { return role != Role::kOther && role != Role::kInference; }

std::uint64_t size_of(const ProcessSample& sample) {
  return sample.footprint_bytes().value_or(sample.rss_bytes.value_or(0));
}

}  // namespace

Roster make_roster(const monitor::Sampler& sampler, const Tick& tick) {
  std::vector<std::pair<const ProcessSample*, Role>> alive;
  for (const ProcessSample& sample : tick.processes) {
    const ProcessRecord* record = sampler.find(sample.key);
    if (record != nullptr && sample.state != 'Z' && sample.state != 'X') {
      alive.emplace_back(&sample, record->role);
    }
  }
  Roster roster;
  for (const auto& [sample, role] : alive) {
    roster.members.push_back(sample->key);
    if (is_trainer(role)) {
      roster.trainers.push_back(sample->key);
    }
  }
  std::stable_sort(alive.begin(), alive.end(), [](const auto& a, const auto& b) {
    return size_of(*a.first) > size_of(*b.first);
  });
  for (const auto& [sample, role] : alive) {
    roster.largest.push_back(*sample);
  }
  roster.is_recognised = !roster.trainers.empty();
  if (roster.is_recognised) {
    roster.who = roster.trainers.size() == 1
                     ? fmt::format("the trainer is pid {}", roster.trainers.front().pid)
                     : fmt::format("{} ranks, the first is pid {}", roster.trainers.size(),
                                   roster.trainers.front().pid);
    return roster;
  }
  const auto other = std::find_if(alive.begin(), alive.end(),
                                  [](const auto& one) { return !is_helper(one.second); });
  const auto chosen = other != alive.end() ? other : alive.begin();
  if (chosen != alive.end()) {
    roster.trainers.push_back(chosen->first->key);
    roster.who = fmt::format(
        "no trainer was recognised; the largest process, now pid {}, gets the "
        "signal",
        chosen->first->key.pid);
  }
  return roster;
}

}  // namespace tidemark::guard
