// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/run_tracks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tracker/curve/curve_window.h"

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
    sizes.last_bytes += track.exited_s && *track.exited_s <= window.to ? 0.0 : levels->last_bytes;
  }
  return sizes;
}

}  // namespace

std::string_view metric_name(Metric metric) {
  static constexpr std::array<std::string_view, kMetricCount> kNames{
      "footprint",     "rss",  "pss", "uss",        "rss_file",
      "rss_shmem",     "swap", "gpu", "gpu_device", "torch_allocated",
      "torch_reserved"};
  return kNames[static_cast<std::size_t>(metric)];
}

std::string_view track_kind_name(TrackKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"process", "role", "tree", "shm"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

// Pss is read rarely; fewer points than that decide nothing, where rss would.
constexpr std::uint64_t kFewestPoints = 6;

bool same_places(const std::vector<Cell>& a, const std::vector<Cell>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Cell& x, const Cell& y) {
    return x.place() == y.place() && x.count == y.count;
  });
}

// Resident memory that is no file is anonymous or shared: a footprint, for those who did not record
// the parts.
std::optional<Series> footprint_of_parts(const Track& track) {
  const std::vector<Cell>& rss = track.of(Metric::kRss).cells();
  const std::vector<Cell>& file = track.of(Metric::kRssFile).cells();
  const std::vector<Cell>& swap = track.of(Metric::kSwap).cells();
  if (rss.empty() || !same_places(rss, file)) {
    return std::nullopt;
  }
  const bool swap_known = same_places(rss, swap);
  Series footprint(std::max(rss.size(), Series::kDefaultCells));
  for (std::size_t i = 0; i < rss.size(); ++i) {
    const double swap_bytes = swap_known ? swap[i].mean_bytes() : 0.0;
    footprint.add(rss[i].t_s, rss[i].step,
                  std::max(rss[i].mean_bytes() - file[i].mean_bytes() + swap_bytes, 0.0));
  }
  return footprint;
}

std::optional<JudgedCurve> first_known(const Track& track,
                                       const std::array<Metric, 4>& in_this_order) {
  for (const Metric metric : in_this_order) {
    if (!track.of(metric).empty()) {
      return JudgedCurve{metric, track.of(metric)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<JudgedCurve> choose_curve(const Track& track, std::optional<Metric> asked) {
  if (track.kind == TrackKind::kShm) {
    return !asked || *asked == Metric::kFootprint
               ? first_known(track,
                             {Metric::kFootprint, Metric::kRssShmem, Metric::kRss, Metric::kPss})
               : std::nullopt;
  }
  if (asked) {
    const bool is_blind = *asked == Metric::kGpu && track.of(Metric::kGpu).empty();
    const Metric metric = is_blind ? Metric::kGpuDevice : *asked;
    const Series& series = track.of(metric);
    return series.empty() ? std::nullopt : std::optional(JudgedCurve{metric, series});
  }
  // In a sum, pss counts shared memory once and the parts do not.
  const bool parts_tell = track.kind == TrackKind::kProcess || track.of(Metric::kPss).empty();
  if (track.of(Metric::kFootprint).empty() && parts_tell) {
    if (std::optional<Series> footprint = footprint_of_parts(track)) {
      return JudgedCurve{Metric::kFootprint, std::move(*footprint)};
    }
  }
  const bool pss_is_rare = track.of(Metric::kPss).samples() < kFewestPoints &&
                           track.of(Metric::kRss).samples() >= kFewestPoints;
  return track.kind == TrackKind::kProcess || pss_is_rare
             ? first_known(track, {Metric::kFootprint, Metric::kRss, Metric::kPss, Metric::kUss})
             : first_known(track, {Metric::kFootprint, Metric::kPss, Metric::kRss, Metric::kUss});
}

const Series* size_curve(const Track& track) {
  for (const Metric metric : {Metric::kFootprint, Metric::kRss, Metric::kPss}) {
    if (!track.of(metric).empty()) {
      return &track.of(metric);
    }
  }
  return nullptr;
}

bool is_member(const Track& process, const Track& group) {
  return process.kind == TrackKind::kProcess &&
         (group.kind == TrackKind::kTree ||
          (group.kind == TrackKind::kRole && process.role == group.role));
}

Window after_first_starts(const RunTracks& run, const Track& group, Window window) {
  const double beginning_ends = window.from + kBeginning * (window.to - window.from);
  for (const Track& track : run.tracks) {
    if (is_member(track, group) && track.started_s <= beginning_ends) {
      window.from = std::max(window.from, track.started_s);
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
