// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/group_sharing.h"

#include <algorithm>

namespace tidemark::tracker {
namespace {

constexpr double kSmallPart = 0.2;
constexpr double kBeginning = 0.2;  // of a window

// What the processes of a group see by themselves, shared pages included.
struct OwnSizes {
  double last_bytes = 0.0;
  double growth_bytes = 0.0;  // after its start
  bool known = false;
};

OwnSizes own_sizes(const RunTracks& run, const Track& group, Metric metric, const Window& window) {
  OwnSizes sizes;
  for (const Track& track : run.tracks) {
    if (!is_member(track, group)) {
      continue;
    }
    const std::optional<Levels> levels = levels_in(track.of(metric), window);
    if (!levels) {
      continue;
    }
    sizes.known = true;
    sizes.growth_bytes += std::max(levels->growth_bytes(), 0.0);
    sizes.last_bytes += track.died_s && *track.died_s <= window.to ? 0.0 : levels->last_bytes;
  }
  return sizes;
}

}  // namespace

bool is_member(const Track& process, const Track& group) {
  return process.kind == TrackKind::kProcess &&
         (group.kind == TrackKind::kTree ||
          (group.kind == TrackKind::kRole && process.role == group.role));
}

Window after_first_starts(const RunTracks& run, const Track& group, Window window) {
  const double beginning_ends = window.from + kBeginning * (window.to - window.from);
  for (const Track& track : run.tracks) {
    if (is_member(track, group) && track.born_s <= beginning_ends) {
      window.from = std::max(window.from, track.born_s);
    }
  }
  return window;
}

std::optional<double> unsharing_bound(const RunTracks& run, const Track& group,
                                      const JudgedCurve& curve, const Window& judged) {
  const Window window = after_first_starts(run, group, judged);
  const bool shares_counted_once =
      curve.metric == Metric::kPss || curve.metric == Metric::kFootprint;
  if (group.kind == TrackKind::kProcess || group.kind == TrackKind::kShm || !shares_counted_once) {
    return std::nullopt;
  }
  const std::optional<Levels> levels = levels_in(curve.series, window);
  const std::optional<Levels> rss = levels_in(group.of(Metric::kRss), window);
  if (!levels || !rss || levels->growth_bytes() <= 0.0) {
    return std::nullopt;
  }
  const double small = kSmallPart * levels->growth_bytes();
  const std::optional<Levels> swap = levels_in(group.of(Metric::kSwap), window);
  const OwnSizes own = own_sizes(
      run, group, curve.metric == Metric::kPss ? Metric::kRss : Metric::kFootprint, window);
  const double seen_growth =
      std::max(rss->growth_bytes(), 0.0) + (swap ? std::max(swap->growth_bytes(), 0.0) : 0.0);
  if (seen_growth > small || own.growth_bytes > small) {
    return std::nullopt;
  }
  const double bound =
      own.known ? own.last_bytes : rss->last_bytes + (swap ? swap->last_bytes : 0.0);
  return bound > levels->last_bytes ? std::optional(bound) : std::nullopt;
}

bool grew_by_touching_shared(const Track& process, const Series& tree, const Window& window) {
  const std::optional<double> grown = growth_in(process.of(Metric::kFootprint), window);
  const std::optional<double> shared = growth_in(process.of(Metric::kRssShmem), window);
  const std::optional<double> tree_grown = growth_in(tree, window);
  return grown && shared && tree_grown && *shared > 0.0 && *shared >= (1.0 - kSmallPart) * *grown &&
         *tree_grown < *shared / 2.0;
}

}  // namespace tidemark::tracker
