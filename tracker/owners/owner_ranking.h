// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracker/causes/advice.h"
#include "tracker/curve/judge.h"
#include "tracker/owners/owner_growth.h"
#include "tracker/owners/owner_tracks.h"

namespace tidemark::tracker {

// Owners of the same path and type in all processes of one role. The figures are sums over them.
struct RankedOwner {
  std::vector<JudgedOwner> members;  // the one that grew most first; at least one

  Verdict verdict = Verdict::kStable;  // the strongest
  bool undetermined = false;
  std::optional<Needs> needs;
  GrowthRate rate;  // low and high only of one member
  double growth_bytes = 0.0;
  // Of what their processes grew by; nullopt: that is not known, or too little to be compared.
  std::optional<double> share_of_growth;
  // At the last look.
  std::uint64_t grown_bytes = 0;
  std::uint64_t grown_bytes_alone = 0;
  std::optional<std::uint64_t> entries;
  std::optional<std::uint64_t> retained_bytes;
  std::optional<std::uint64_t> reached_bytes;
  std::optional<double> entries_per_step;
  std::optional<double> entries_per_s;
  std::vector<HeldObjects> holds;  // the most bytes first
  std::vector<OwnerSite> sites;    // likewise

  const JudgedOwner& first() const { return members.front(); }
  const OwnerRecord& record() const { return first().track->record; }
  bool grows() const { return verdict >= Verdict::kGrowing; }
  // The most that is known to be held by it.
  std::uint64_t held_bytes() const;
};

// Which part of the growth of a process its owners hold, between its first and last look.
struct OwnerCoverage {
  const LookedProcess* process = nullptr;
  std::optional<double> footprint_growth_bytes;
  double heap_growth_bytes = 0.0;  // objects that came, less those that went
  double owned_bytes = 0.0;        // what owners hold more
  double native_bytes = 0.0;       // of these, held by native code only
  // What owners hold of the growth of the footprint; nullopt: that is not known, or too little to
  // be compared. 1.3: they grew by more, into memory that was free before.
  std::optional<double> explained_share;
};

struct OwnerRanking {
  // Those that grow first, the most growth first; then the largest.
  std::vector<RankedOwner> owners;
  std::vector<OwnerCoverage> processes;  // the one that grew most first

  std::size_t growing() const;
};

// The process that grows by less than this has no growth to be shared out.
inline constexpr double kLeastSharedGrowth = 1024.0 * 1024.0;

// Known causes that the interpreter of the process that grew most, and what is kept there, fit.
std::vector<Advice> owner_advice(const RunOwners& run, const OwnerRanking& ranking);

OwnerRanking rank_owners(const RunOwners& run, const Options& options);

// Types or tensors of a process, with what they grew by between its first and last look.
struct TypeGrowth {
  TypeSample now;
  std::optional<double> growth_bytes;  // nullopt: not named at the first look
  std::optional<double> growth_count;
};
struct TensorGrowth {
  TensorSample now;
  std::optional<double> growth_bytes;
  std::optional<double> growth_count;
};
// The most growth first, then the most bytes. `looks` of the process: after a single one nothing
// is known of growth.
std::vector<TypeGrowth> type_growth(const LookedProcess& process);
std::vector<TensorGrowth> tensor_growth(const LookedProcess& process);

}  // namespace tidemark::tracker
