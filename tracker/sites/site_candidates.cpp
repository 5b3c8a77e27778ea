// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/site_candidates.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

namespace tidemark::tracker {
namespace {

double as_double(std::uint64_t bytes) { return static_cast<double>(bytes); }

// Sites with the same one are one stack; one that has no names yet is like no other.
auto stack_of(const SiteTrack& track) {
  const SiteRecord& record = track.record;
  return std::tuple<AllocationKind, const std::vector<std::uint32_t>&, std::uint32_t>(
      record.kind, record.frames, record.frames.empty() ? record.site : 0);
}

void add_stacks(const RunSites& run, const TracedProcess& process,
                std::vector<CandidateStack>& all) {
  std::vector<const SiteTrack*> tracks;
  for (const std::size_t i : process.sites) {
    const SiteTrack& track = run.sites[i];
    if (!track.live.empty() && track.record.kind != AllocationKind::kAllocatorMap) {
      tracks.push_back(&track);
    }
  }
  std::stable_sort(tracks.begin(), tracks.end(), [](const SiteTrack* a, const SiteTrack* b) {
    return stack_of(*a) < stack_of(*b);
  });
  const SiteTrack* last = nullptr;
  for (const SiteTrack* track : tracks) {
    if (last == nullptr || stack_of(*last) != stack_of(*track)) {
      all.emplace_back().process = &process;
    }
    CandidateStack& stack = all.back();
    stack.tracks.push_back(track);
    stack.first_bytes += as_double(track->first_live_bytes);
    stack.held_bytes += held_late(*track);
    last = track;
  }
}

}  // namespace

double held_late(const SiteTrack& track) {
  const std::vector<Cell>& cells = track.live.cells();
  const std::size_t late = cells.size() / 2;
  double sum = 0.0;
  for (std::size_t i = late; i < cells.size(); ++i) {
    sum += cells[i].mean_bytes();
  }
  return std::max(as_double(track.last.live_bytes), sum / static_cast<double>(cells.size() - late));
}

std::vector<CandidateStack> candidate_stacks(const RunSites& run, std::size_t most) {
  std::vector<CandidateStack> all;
  for (const TracedProcess& process : run.processes) {
    add_stacks(run, process, all);
  }
  const auto by_growth = [](const CandidateStack& a, const CandidateStack& b) {
    return std::pair(b.grown_bytes(), a.tracks.front()->record.site) <
           std::pair(a.grown_bytes(), b.tracks.front()->record.site);
  };
  const auto by_size = [](const CandidateStack& a, const CandidateStack& b) {
    return std::pair(b.held_bytes, a.tracks.front()->record.site) <
           std::pair(a.held_bytes, b.tracks.front()->record.site);
  };
  const auto half = static_cast<std::ptrdiff_t>(std::min(all.size(), (most + 1) / 2));
  std::partial_sort(all.begin(), all.begin() + half, all.end(), by_growth);
  const auto rest = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(most) - half,
                                             static_cast<std::ptrdiff_t>(all.size()) - half);
  std::partial_sort(all.begin() + half, all.begin() + half + rest, all.end(), by_size);
  all.erase(all.begin() + half + rest, all.end());
  return all;
}

}  // namespace tidemark::tracker
