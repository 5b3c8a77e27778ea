// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/untraced_tracks.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "tracker/sites/site_growth.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::tracker {
namespace {

// In bytes. What keeps growing is worth a word sooner than what has settled.
constexpr double kLeastGrowth = 1024.0 * 1024.0;
constexpr double kLeastSettled = 16.0 * kLeastGrowth;

// At any time, above the first sample.
double most_growth(const UntracedTrack& track) {
  const std::vector<Cell>& cells = track.footprint.cells();
  double most = 0.0;
  for (const Cell& cell : cells) {
    most = std::max(most, cell.max_bytes - cells.front().min_bytes);
  }
  return most;
}

UntracedGrowth growth_of(const UntracedTrack& track, const Options& options) {
  const SeriesVerdict verdict = judge(track.footprint, options);
  UntracedGrowth growth;
  growth.track = &track;
  growth.from_s = verdict.begin.t_s.value_or(0.0);
  growth.to_s = verdict.end.t_s.value_or(0.0);
  const double grown = verdict.last_floor_bytes - verdict.first_floor_bytes;
  growth.keeps_growing =
      grown >= kLeastGrowth && (verdict.verdict >= Verdict::kGrowing || verdict.undetermined);
  growth.footprint_bytes = value_at(track.footprint, growth.to_s).value_or(0.0);
  if (growth.keeps_growing || grown >= kLeastSettled) {
    growth.growth_bytes = change(track.footprint, growth.from_s, growth.to_s).value_or(grown);
  }
  return growth;
}

}  // namespace

void UntracedTracks::add(const ProcessKey& key, const ProcessLabel& label, double t_s,
                         double bytes) {
  const auto [it, is_new] = living_.try_emplace(key);
  if (is_new) {
    it->second.key = key;
    it->second.label = label;
  }
  it->second.footprint.add(t_s, kUnknown, bytes);
}

void UntracedTracks::end(const ProcessKey& key) {
  const auto it = living_.find(key);
  if (it == living_.end()) {
    return;
  }
  UntracedTrack track = std::move(it->second);
  living_.erase(it);
  if (most_growth(track) < kLeastGrowth) {
    return;
  }
  ended_.push_back(std::move(track));
  if (ended_.size() > kMostEnded) {
    ended_.erase(std::min_element(ended_.begin(), ended_.end(),
                                  [](const UntracedTrack& a, const UntracedTrack& b) {
                                    return most_growth(a) < most_growth(b);
                                  }));
  }
}

bool UntracedTracks::lacks_reason(const ProcessKey& key) const {
  constexpr std::uint64_t kMostSamples = 8;
  const auto it = living_.find(key);
  return it != living_.end() && it->second.reason == UntracedReason::kUnknown &&
         it->second.footprint.samples() <= kMostSamples;
}

void UntracedTracks::set_reason(const UntracedProcess& process) {
  if (const auto it = living_.find(process.key); it != living_.end()) {
    it->second.reason = process.reason;
  }
}

std::vector<const UntracedTrack*> UntracedTracks::all() const {
  std::vector<const UntracedTrack*> tracks;
  for (const auto& [key, track] : living_) {
    tracks.push_back(&track);
  }
  for (const UntracedTrack& track : ended_) {
    tracks.push_back(&track);
  }
  return tracks;
}

std::vector<UntracedGrowth> untraced_growth(const UntracedTracks& tracks, const Options& options) {
  std::vector<UntracedGrowth> all;
  for (const UntracedTrack* track : tracks.all()) {
    const UntracedGrowth growth = growth_of(*track, options);
    if (growth.growth_bytes > 0.0 || growth.footprint_bytes >= kLeastSettled) {
      all.push_back(growth);
    }
  }
  const auto rank = [](const UntracedGrowth& growth) {
    return std::tuple(growth.keeps_growing, growth.growth_bytes, growth.footprint_bytes,
                      -growth.track->key.pid);
  };
  std::sort(all.begin(), all.end(),
            [&](const UntracedGrowth& a, const UntracedGrowth& b) { return rank(a) > rank(b); });
  return all;
}

}  // namespace tidemark::tracker
