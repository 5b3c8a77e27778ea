// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/owner_diff.h"

#include <algorithm>
#include <utility>

namespace tidemark::tracker {
namespace {

constexpr double kSameRate = 0.1;

std::optional<OwnerDiffSide> side_of(const RankedOwner* owner) {
  if (owner == nullptr) {
    return std::nullopt;
  }
  return OwnerDiffSide{owner->verdict, owner->rate, owner->growth_bytes, owner->held_bytes()};
}

const RankedOwner* same_in(const OwnerRanking& ranking, const RankedOwner& owner) {
  const auto same =
      std::find_if(ranking.owners.begin(), ranking.owners.end(), [&](const RankedOwner& other) {
        return other.record().path == owner.record().path &&
               other.first().process->role == owner.first().process->role;
      });
  return same == ranking.owners.end() ? nullptr : &*same;
}

bool grows(const std::optional<OwnerDiffSide>& side) { return side && side->grows(); }

Change change_of(const OwnerDiff& diff) {
  if (grows(diff.a) != grows(diff.b)) {
    return grows(diff.a) ? Change::kBetter : Change::kWorse;
  }
  const auto rate_of = [&](const OwnerDiffSide& side) {
    return diff.on_steps ? side.rate.bytes_per_step : side.rate.bytes_per_s;
  };
  const std::optional<double> a = rate_of(*diff.a);
  const std::optional<double> b = rate_of(*diff.b);
  if (!a || !b) {
    return Change::kUnclear;
  }
  if (std::max(*a, *b) - std::min(*a, *b) <= kSameRate * std::max(*a, *b)) {
    return Change::kSame;
  }
  return *b < *a ? Change::kBetter : Change::kWorse;
}

}  // namespace

std::vector<OwnerDiff> compare_owners(const OwnerRanking& a, const OwnerRanking& b,
                                      std::size_t most) {
  std::vector<OwnerDiff> diffs;
  const auto add = [&](const RankedOwner& named, const RankedOwner* in_a, const RankedOwner* in_b) {
    OwnerDiff& diff = diffs.emplace_back();
    diff.path = named.record().path;
    diff.type = named.record().type;
    diff.role = named.first().process->role;
    diff.a = side_of(in_a);
    diff.b = side_of(in_b);
    const auto has_steps = [](const std::optional<OwnerDiffSide>& side) {
      return !grows(side) || side->rate.bytes_per_step.has_value();
    };
    diff.on_steps = has_steps(diff.a) && has_steps(diff.b);
    diff.change = change_of(diff);
  };
  for (const RankedOwner& owner : a.owners) {
    const RankedOwner* const other = same_in(b, owner);
    if (owner.grows() || (other != nullptr && other->grows())) {
      add(owner, &owner, other);
    }
  }
  for (const RankedOwner& owner : b.owners) {
    if (owner.grows() && same_in(a, owner) == nullptr) {
      add(owner, nullptr, &owner);
    }
  }
  const auto growth = [](const OwnerDiff& diff) {
    return std::max(diff.a ? diff.a->growth_bytes : 0.0, diff.b ? diff.b->growth_bytes : 0.0);
  };
  std::stable_sort(diffs.begin(), diffs.end(),
                   [&](const OwnerDiff& x, const OwnerDiff& y) { return growth(x) > growth(y); });
  diffs.resize(std::min(diffs.size(), most));
  return diffs;
}

}  // namespace tidemark::tracker
