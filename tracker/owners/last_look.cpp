// SPDX-License-Identifier: Apache-2.0
#include "tracker/owners/last_look.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace tidemark::tracker {
namespace {

constexpr std::uint64_t kLeastHolderGrowth = 64U << 10U;
constexpr std::uint64_t kLeastHeld = 1U << 20U;
constexpr std::uint64_t kSmallAgainstLargest = 100;  // a hundredth of the first

void set_what_came_after(const RunOwners& run, LastLook& last) {
  const double look_s = last.look().t_s;
  const auto& exited_s = last.process->exited_s;
  double then_s = run.end_s;
  if (run.oom_kill_s && *run.oom_kill_s >= look_s) {
    last.after = AfterLook::kOomKill;
    then_s = *run.oom_kill_s;
  } else if (exited_s && *exited_s >= look_s) {
    last.after = AfterLook::kExit;
    then_s = *exited_s;
  }
  last.before_s = std::max(0.0, then_s - look_s);
  last.span_s = look_s - last.process->looks.front().t_s;
}

// The part of an owner that is in this process; none where the last look did not name it.
std::optional<LastLook::Holder> holder_in(const LookedProcess& process, const RankedOwner& owner) {
  for (const JudgedOwner& member : owner.members) {
    const OwnerTrack& track = *member.track;
    if (member.process != &process || track.points.empty() ||
        track.points.back().look + 1 != process.looks.size()) {
      continue;
    }
    LastLook::Holder holder;
    holder.owner = &owner;
    holder.grown_bytes = track.last.grown_bytes;
    holder.held_bytes = std::max({track.last.grown_bytes, track.last.retained_bytes.value_or(0),
                                  track.last.reached_bytes.value_or(0)});
    const double of_process = process.footprint_growth().value_or(0.0);
    if (of_process >= kLeastSharedGrowth) {
      holder.share_of_growth = static_cast<double>(holder.grown_bytes) / of_process;
    }
    return holder;
  }
  return std::nullopt;
}

}  // namespace

std::optional<LastLook> find_last_look(const RunOwners& run, const OwnerRanking& ranking,
                                       std::size_t most) {
  const auto looked =
      std::find_if(ranking.processes.begin(), ranking.processes.end(),
                   [](const OwnerCoverage& coverage) { return !coverage.process->looks.empty(); });
  if (looked == ranking.processes.end()) {
    return std::nullopt;
  }
  LastLook last;
  last.process = looked->process;
  set_what_came_after(run, last);
  for (const RankedOwner& owner : ranking.owners) {
    if (const auto holder = holder_in(*last.process, owner)) {
      last.holders.push_back(*holder);
    }
  }
  std::stable_sort(last.holders.begin(), last.holders.end(),
                   [](const LastLook::Holder& a, const LastLook::Holder& b) {
                     return std::tie(a.grown_bytes, a.held_bytes) >
                            std::tie(b.grown_bytes, b.held_bytes);
                   });
  const bool has_growth =
      !last.holders.empty() && last.holders.front().grown_bytes >= kLeastHolderGrowth;
  const std::uint64_t least =
      has_growth
          ? std::max(kLeastHolderGrowth, last.holders.front().grown_bytes / kSmallAgainstLargest)
          : kLeastHeld;
  std::erase_if(last.holders, [&](const LastLook::Holder& holder) {
    return (has_growth ? holder.grown_bytes : holder.held_bytes) < least;
  });
  if (!has_growth) {
    std::stable_sort(last.holders.begin(), last.holders.end(),
                     [](const LastLook::Holder& a, const LastLook::Holder& b) {
                       return a.held_bytes > b.held_bytes;
                     });
    for (LastLook::Holder& holder : last.holders) {
      holder.grown_bytes = 0;
      holder.share_of_growth.reset();
    }
  }
  last.holders.resize(std::min(last.holders.size(), most));
  return last;
}

std::string_view after_look_name(AfterLook after) {
  constexpr std::array<std::string_view, 3> kNames{"oom_kill", "exit", "end_of_run"};
  return kNames[static_cast<std::size_t>(after)];
}

}  // namespace tidemark::tracker
