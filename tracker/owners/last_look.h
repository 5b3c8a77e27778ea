// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tracker/owners/owner_ranking.h"
#include "tracker/owners/owner_tracks.h"

namespace tidemark::tracker {

// What came after the last look. The names are in JSON: they never change.
enum class AfterLook { kOomKill, kExit, kEndOfRun };

// Who held the memory of a process when it was looked at for the last time. What it points to
// outlives it.
struct LastLook {
  struct Holder {
    const RankedOwner* owner = nullptr;
    std::uint64_t grown_bytes = 0;  // since the first look
    std::uint64_t held_bytes = 0;
    std::optional<double> share_of_growth;  // of the process
  };

  const LookedProcess* process = nullptr;
  AfterLook after = AfterLook::kEndOfRun;
  double before_s = 0.0;  // from the look until then
  double span_s = 0.0;    // from the first look to the last
  // Those that grew, the most first; where none did, those that held most.
  std::vector<Holder> holders;

  const HeapLook& look() const { return process->looks.back(); }
  bool has_growth() const { return !holders.empty() && holders.front().grown_bytes > 0; }
};

// Of the process that grew most between its looks; nullopt: no look found anything. `most`:
// holders.
std::optional<LastLook> find_last_look(const RunOwners& run, const OwnerRanking& ranking,
                                       std::size_t most = 3);

// "oom_kill", ...
std::string_view after_look_name(AfterLook after);

}  // namespace tidemark::tracker
