// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "common/records.h"
#include "monitor/footprint.h"

namespace tidemark::monitor {

struct WatchedProcess;

// Adds up the processes of one tick, by role and as a tree.
class GroupSums {
 public:
  void add(const WatchedProcess& watched, const ProcessSample& sample);
  // Writes `tick.roles` and `tick.tree`.
  void finish(const FootprintLedger::Totals& footprints, Tick& tick) const;

 private:
  std::array<GroupSample, kRoleCount> roles_{};
  std::array<std::uint32_t, kRoleCount> without_pss_{};
};

}  // namespace tidemark::monitor
