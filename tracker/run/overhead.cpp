// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/overhead.h"

#include <algorithm>
#include <optional>

namespace tidemark::tracker {
namespace {

constexpr double kWorthTelling = 0.01;  // of the tree

std::optional<double> value_at(const Series& series, double place) {
  const Cell* cell = cell_before(series, place);
  return cell == nullptr ? std::nullopt : std::optional(cell->mean_bytes());
}

bool is_helper(Role role) {
  return role != Role::kTrainer && role != Role::kRank && role != Role::kInference;
}

bool rises(const JudgedTracks& judged, const RunTracks& run, const Track& role) {
  return std::any_of(judged.tracks.begin(), judged.tracks.end(), [&](const JudgedTrack& one) {
    const Track& track = run.tracks[one.reading.track];
    return track.kind == TrackKind::kRole && track.role == role.role &&
           one.reading.reading.verdict >= Verdict::kGrowing;
  });
}

}  // namespace

std::vector<Overhead> find_overheads(const RunTracks& run, const JudgedTracks& judged) {
  std::vector<Overhead> overheads;
  for (const Track& track : run.tracks) {
    const std::vector<Cell>& rss = track.of(Metric::kRss).cells();
    if (track.kind != TrackKind::kRole || !is_helper(track.role) || track.most_processes < 2 ||
        rss.empty() || rises(judged, run, track)) {
      continue;
    }
    const auto most = std::max_element(rss.begin(), rss.end(), [](const Cell& a, const Cell& b) {
      return a.mean_bytes() < b.mean_bytes();
    });
    if (most->mean_bytes() < kWorthTelling * judged.tree_floor_bytes) {
      continue;
    }
    // Shares are read later than sizes: those of the end of the stretch, before processes go.
    auto last = most;
    while (last + 1 != rss.end() && (last + 1)->mean_bytes() >= 0.9 * most->mean_bytes()) {
      ++last;
    }
    overheads.push_back({track.role, track.most_processes, most->mean_bytes(),
                         value_at(track.of(Metric::kFootprint), place_of(*last)),
                         value_at(track.of(Metric::kPss), place_of(*last))});
  }
  return overheads;
}

}  // namespace tidemark::tracker
