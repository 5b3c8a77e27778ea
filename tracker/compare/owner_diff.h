// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracker/compare/run_diff.h"
#include "tracker/owners/owner_ranking.h"

namespace tidemark::tracker {

// An owner in one of two runs.
struct OwnerDiffSide {
  Verdict verdict = Verdict::kStable;
  GrowthRate rate;
  double growth_bytes = 0.0;
  std::uint64_t held_bytes = 0;

  bool grows() const { return verdict >= Verdict::kGrowing; }
};

// An owner that grows in one of two runs, or in both: the same path in a process of the same role.
struct OwnerDiff {
  std::string path;
  std::string type;
  Role role = Role::kOther;
  std::optional<OwnerDiffSide> a;  // nullopt: it was not among the largest
  std::optional<OwnerDiffSide> b;
  bool on_steps = false;  // both rates are known by step
  Change change = Change::kUnclear;
};

// Those that grew most first, at most `most`.
std::vector<OwnerDiff> compare_owners(const OwnerRanking& a, const OwnerRanking& b,
                                      std::size_t most = 20);

}  // namespace tidemark::tracker
