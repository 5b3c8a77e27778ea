// SPDX-License-Identifier: Apache-2.0
#include "tracker/owners/owner_ranking.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tracker/causes/signature_facts.h"

namespace tidemark::tracker {
namespace {

// Interpreters make and drop small objects all the time.
constexpr double kLeastGrowth = 16.0 * 1024.0;
constexpr double kShareOfLargest = 0.01;

template <typename T>
void add_known(std::optional<T>& sum, const std::optional<T>& value) {
  if (value) {
    sum = sum.value_or(T{}) + *value;
  }
}

bool look_the_same(const HeldObjects& a, const HeldObjects& b) {
  return std::tie(a.type, a.dtype, a.shape, a.device) ==
         std::tie(b.type, b.dtype, b.shape, b.device);
}

void add_held(std::vector<HeldObjects>& all, const std::vector<HeldObjects>& more) {
  for (const HeldObjects& held : more) {
    const auto known = std::find_if(
        all.begin(), all.end(), [&](const HeldObjects& each) { return look_the_same(each, held); });
    if (known == all.end()) {
      all.push_back(held);
    } else {
      known->count += held.count;
      known->bytes += held.bytes;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const HeldObjects& a, const HeldObjects& b) { return a.bytes > b.bytes; });
}

// What one object is called in every process of a role.
auto identity_of(const JudgedOwner& owner) {
  const OwnerRecord& record = owner.track->record;
  return std::tuple(owner.process->role, record.path, record.type, record.kind);
}

// Rates with an interval are those of one curve: a sum has none.
void add_rate(GrowthRate& sum, const GrowthRate& rate, bool is_first) {
  if (is_first) {
    sum = rate;
    return;
  }
  add_known(sum.bytes_per_s, rate.bytes_per_s);
  add_known(sum.bytes_per_step, rate.bytes_per_step);
  sum.low_bytes_per_s = sum.high_bytes_per_s = std::nullopt;
  sum.low_bytes_per_step = sum.high_bytes_per_step = std::nullopt;
}

RankedOwner put_together(std::vector<JudgedOwner> members) {
  RankedOwner owner;
  owner.members = std::move(members);
  std::stable_sort(
      owner.members.begin(), owner.members.end(), [](const JudgedOwner& a, const JudgedOwner& b) {
        return std::pair(a.verdict, a.growth_bytes) > std::pair(b.verdict, b.growth_bytes);
      });
  const JudgedOwner& first = owner.first();
  owner.verdict = first.verdict;
  owner.needs = first.series.needs;
  for (const JudgedOwner& member : owner.members) {
    const OwnerSample& last = member.track->last;
    owner.undetermined = owner.undetermined || member.undetermined;
    if (member.grows()) {
      add_rate(owner.rate, member.rate, &member == &first);
      add_known(owner.entries_per_step, member.entries_per_step);
      add_known(owner.entries_per_s, member.entries_per_s);
      owner.growth_bytes += member.growth_bytes;
    }
    owner.grown_bytes += last.grown_bytes;
    owner.grown_bytes_alone += std::min(last.grown_bytes_alone, last.grown_bytes);
    add_known(owner.entries, last.entries);
    add_known(owner.retained_bytes, last.retained_bytes);
    add_known(owner.reached_bytes, last.reached_bytes);
    add_held(owner.holds, last.holds);
    owner.sites.insert(owner.sites.end(), last.sites.begin(), last.sites.end());
  }
  std::stable_sort(owner.sites.begin(), owner.sites.end(),
                   [](const OwnerSite& a, const OwnerSite& b) { return a.bytes > b.bytes; });
  return owner;
}

// Whatever is reached from a name is given for what does not grow, and for what does as well: then
// it is there twice.
void leave_out_names_of_others(std::vector<RankedOwner>& owners) {
  const auto is_the_same = [](const RankedOwner& name, const RankedOwner& other) {
    return other.record().kind != OwnerKind::kName && other.record().path == name.record().path &&
           other.first().process->role == name.first().process->role;
  };
  std::set<std::size_t> left_out;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i].record().kind == OwnerKind::kName &&
        std::any_of(owners.begin(), owners.end(),
                    [&](const RankedOwner& other) { return is_the_same(owners[i], other); })) {
      left_out.insert(i);
    }
  }
  for (auto i = left_out.rbegin(); i != left_out.rend(); ++i) {
    owners.erase(owners.begin() + static_cast<std::ptrdiff_t>(*i));
  }
}

std::vector<RankedOwner> all_owners(const RunOwners& run, const Options& options) {
  using Identity = decltype(identity_of(std::declval<JudgedOwner>()));
  std::map<Identity, std::vector<JudgedOwner>> groups;
  for (const LookedProcess& process : run.processes) {
    for (const std::size_t i : process.owners) {
      JudgedOwner owner = judge_owner(run, process, run.owners[i], options);
      if (!run.owners[i].points.empty()) {
        groups[identity_of(owner)].push_back(std::move(owner));
      }
    }
  }
  std::vector<RankedOwner> owners;
  owners.reserve(groups.size());
  for (auto& [identity, members] : groups) {
    owners.push_back(put_together(std::move(members)));
  }
  leave_out_names_of_others(owners);
  return owners;
}

// What grows by next to nothing does not stand among what does.
void leave_out_small_growth(std::vector<RankedOwner>& owners) {
  double largest = 0.0;
  for (const RankedOwner& owner : owners) {
    largest = std::max(largest, owner.grows() ? owner.growth_bytes : 0.0);
  }
  const double least = std::max(kLeastGrowth, kShareOfLargest * largest);
  for (RankedOwner& owner : owners) {
    if (owner.grows() && owner.growth_bytes < least) {
      owner.verdict = Verdict::kStable;
      owner.rate = {};
      owner.needs.reset();
    }
  }
}

OwnerCoverage coverage_of(const RunOwners& run, const LookedProcess& process) {
  OwnerCoverage coverage;
  coverage.process = &process;
  coverage.footprint_growth_bytes = process.footprint_growth();
  if (process.looks.empty()) {
    return coverage;
  }
  const HeapLook& last = process.looks.back();
  coverage.heap_growth_bytes =
      static_cast<double>(last.new_bytes) - static_cast<double>(last.gone_bytes);
  for (const std::size_t i : process.owners) {
    const OwnerTrack& track = run.owners[i];
    if (track.points.empty() || track.points.back().look + 1 != process.looks.size()) {
      continue;
    }
    const double grown = track.points.back().grown_bytes;
    coverage.owned_bytes += grown;
    const OwnerKind kind = track.record.kind;
    if (kind == OwnerKind::kNative || kind == OwnerKind::kNativeHold) {
      coverage.native_bytes += grown;
    }
  }
  if (coverage.footprint_growth_bytes.value_or(0.0) >= kLeastSharedGrowth) {
    coverage.explained_share = coverage.owned_bytes / *coverage.footprint_growth_bytes;
  }
  return coverage;
}

void set_share(RankedOwner& owner) {
  double grown = 0.0;
  double footprint = 0.0;
  for (const JudgedOwner& member : owner.members) {
    const double of_process = member.process->footprint_growth().value_or(0.0);
    if (of_process < kLeastSharedGrowth) {
      return;
    }
    footprint += of_process;
    grown += static_cast<double>(member.track->last.grown_bytes);
  }
  owner.share_of_growth = grown / footprint;
}

// Of what the process had at its first look and at its last. Only the most of each look are named:
// where all of them were, one that is new held nothing before.
template <typename Growth, typename Sample, typename Same>
std::vector<Growth> growth_of(const std::vector<Sample>& first, const std::vector<Sample>& last,
                              bool is_compared, Same same) {
  std::vector<Growth> all;
  for (const Sample& now : last) {
    Growth& growth = all.emplace_back(Growth{now, std::nullopt, std::nullopt});
    const auto before = std::find_if(first.begin(), first.end(),
                                     [&](const Sample& each) { return same(each, now); });
    if (!is_compared) {
      continue;
    }
    const bool is_new = before == first.end();
    // Below the smallest that was named then, at most.
    const std::uint64_t smallest = first.empty() ? 0 : first.back().bytes;
    if (is_new && now.bytes < 2 * smallest) {
      continue;
    }
    growth.growth_bytes =
        static_cast<double>(now.bytes) - (is_new ? 0.0 : static_cast<double>(before->bytes));
    growth.growth_count =
        static_cast<double>(now.count) - (is_new ? 0.0 : static_cast<double>(before->count));
  }
  std::stable_sort(all.begin(), all.end(), [](const Growth& a, const Growth& b) {
    return std::pair(std::max(a.growth_bytes.value_or(0.0), 0.0), a.now.bytes) >
           std::pair(std::max(b.growth_bytes.value_or(0.0), 0.0), b.now.bytes);
  });
  return all;
}

auto looks_of(const TensorSample& tensor) {
  return std::tie(tensor.device, tensor.dtype, tensor.shape, tensor.requires_grad, tensor.is_graph,
                  tensor.is_view, tensor.is_pinned);
}

}  // namespace

std::uint64_t RankedOwner::held_bytes() const {
  return std::max({grown_bytes, retained_bytes.value_or(0), reached_bytes.value_or(0)});
}

std::size_t OwnerRanking::growing() const {
  return static_cast<std::size_t>(std::count_if(
      owners.begin(), owners.end(), [](const RankedOwner& owner) { return owner.grows(); }));
}

OwnerRanking rank_owners(const RunOwners& run, const Options& options) {
  OwnerRanking ranking;
  ranking.owners = all_owners(run, options);
  leave_out_small_growth(ranking.owners);
  for (RankedOwner& owner : ranking.owners) {
    set_share(owner);
  }
  const auto rank = [](const RankedOwner& owner) {
    return std::tuple(owner.grows(), owner.grows() ? owner.growth_bytes : 0.0, owner.held_bytes());
  };
  std::stable_sort(ranking.owners.begin(), ranking.owners.end(),
                   [&](const RankedOwner& a, const RankedOwner& b) { return rank(a) > rank(b); });
  for (const LookedProcess& process : run.processes) {
    ranking.processes.push_back(coverage_of(run, process));
  }
  const auto grown = [](const OwnerCoverage& coverage) {
    return std::max(coverage.footprint_growth_bytes.value_or(0.0), coverage.heap_growth_bytes);
  };
  std::stable_sort(
      ranking.processes.begin(), ranking.processes.end(),
      [&](const OwnerCoverage& a, const OwnerCoverage& b) { return grown(a) > grown(b); });
  return ranking;
}

std::vector<Advice> owner_advice(const RunOwners& run, const OwnerRanking& ranking) {
  if (ranking.processes.empty() || ranking.processes.front().process->looks.empty()) {
    return {};
  }
  const OwnerCoverage& first = ranking.processes.front();
  const HeapLook& last = first.process->looks.back();
  Facts facts;
  facts.tree_floor_bytes = static_cast<double>(last.footprint_bytes.value_or(last.heap_bytes)) -
                           std::max(0.0, first.footprint_growth_bytes.value_or(0.0));
  const bool grows =
      first.footprint_growth_bytes.value_or(first.heap_growth_bytes) >= kLeastSharedGrowth;
  facts.trainer_verdict = grows ? Verdict::kGrowing : Verdict::kStable;
  if (!last.interpreter.python.empty()) {
    facts.interpreter = InterpreterState{last.interpreter, 0.0};
    for (const std::size_t i : first.process->owners) {
      const OwnerTrack& track = run.owners[i];
      if (track.record.kind == OwnerKind::kGarbage) {
        facts.interpreter->garbage_bytes += static_cast<double>(track.last.grown_bytes);
      }
    }
  }
  return advice_for(facts);
}

std::vector<TypeGrowth> type_growth(const LookedProcess& process) {
  return growth_of<TypeGrowth>(
      process.first_types, process.last_types, process.looks.size() > 1,
      [](const TypeSample& a, const TypeSample& b) { return a.type == b.type; });
}

std::vector<TensorGrowth> tensor_growth(const LookedProcess& process) {
  return growth_of<TensorGrowth>(
      process.first_tensors, process.last_tensors, process.looks.size() > 1,
      [](const TensorSample& a, const TensorSample& b) { return looks_of(a) == looks_of(b); });
}

}  // namespace tidemark::tracker
