// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/site_growth.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>

#include "tracker/curve/judge.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

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

namespace {

constexpr std::size_t kFewestFloorPoints = 4;  // of the floor, for a rate

// The low-water mark at a time; nothing before the first sample.
double low_at(const std::vector<Cell>& cells, double t_s) {
  const auto after = std::upper_bound(cells.begin(), cells.end(), t_s,
                                      [](double at, const Cell& cell) { return at < cell.t_s; });
  return after == cells.begin() ? 0.0 : std::prev(after)->min_bytes;
}

// A site that came after the first sample of its process held nothing before: that is part of its
// curve, and tells a late leak from a warm-up.
bool came_later(const SiteTrack& track, const TracedProcess& process) {
  return track.first_seen_s > process.first_sample_s;
}

struct SumPoint {
  const Cell* at = nullptr;
  double bytes = 0.0;  // that all sites held
};

// The process may end while it is sampled: what it held as a whole is from before, its sites
// are from after. A last fall, without an earlier one half that size, is no part of the curve.
void leave_out_last_fall(std::vector<SumPoint>& points) {
  constexpr std::ptrdiff_t kPoints = 4;
  constexpr double kStillUp = 0.95;
  if (points.empty()) {
    return;
  }
  const auto low = [](const SumPoint& a, const SumPoint& b) { return a.bytes < b.bytes; };
  const auto first = points.end() - std::min(kPoints, std::ssize(points));
  const double level = std::max_element(first, points.end(), low)->bytes;
  auto end = points.end();
  while (std::prev(end)->bytes < kStillUp * level) {
    --end;
  }
  double high = 0.0;
  double earlier_fall = 0.0;
  for (auto point = points.begin(); point != end; ++point) {
    high = std::max(high, point->bytes);
    earlier_fall = std::max(earlier_fall, high - point->bytes);
  }
  if (earlier_fall < (level - points.back().bytes) / 2.0) {
    points.erase(end, points.end());
  }
}

// At each sample of the process while it ran, what all of them held.
Series sum_of(const std::vector<const SiteTrack*>& tracks, const TracedProcess& process) {
  std::vector<SumPoint> points;
  for (const Cell& cell : process.live.cells()) {
    if (cell.t_s > process.last_sample_s) {
      break;
    }
    SumPoint& point = points.emplace_back(SumPoint{&cell, 0.0});
    for (const SiteTrack* track : tracks) {
      point.bytes += low_at(track->live.cells(), cell.t_s);
    }
  }
  if (process.last.has_ended) {
    leave_out_last_fall(points);
  }
  Series sum(SiteTrackBuilder::kCells);
  for (const SumPoint& point : points) {
    sum.add(point.at->t_s, kUnknown, point.bytes);
  }
  return sum;
}

// Sites that hold nothing do not grow yet: with few points the judge sees the bend too early.
// Growth begins where they last held nothing.
void begin_with_the_first_byte(JudgedSites& sites) {
  const bool on_steps = sites.series.axis == Axis::kSteps;
  const double from = (on_steps ? sites.since.step : sites.since.t_s).value_or(0.0);
  const std::vector<FloorPoint>& floor = sites.series.floor;
  // What came only at the very end has no rate of its own.
  for (std::size_t i = 0; i + kFewestFloorPoints <= floor.size() && floor[i].floor_bytes <= 0.0;
       ++i) {
    if (floor[i].x > from) {
      sites.since = floor[i].at;
    }
  }
}

// The rate is that of the straight line through the floor since growth began. A curve that was
// estimated from samples wanders: its jumps, which the judge takes for steps that stay, are part of
// the rate.
void fit_rate(JudgedSites& sites) {
  const SeriesVerdict& judged = sites.series;
  const bool on_steps = judged.axis == Axis::kSteps;
  const double from = (on_steps ? sites.since.step : sites.since.t_s).value_or(0.0);
  std::vector<double> x;
  std::vector<double> y;
  const FloorPoint* first = nullptr;
  const FloorPoint* last = nullptr;
  for (const FloorPoint& point : judged.floor) {
    if (point.x >= from) {
      x.push_back(point.x);
      y.push_back(point.floor_bytes);
      first = first == nullptr ? &point : first;
      last = &point;
    }
  }
  if (x.size() < kFewestFloorPoints) {
    return;
  }
  const double slope = fit_line(x, y).slope;
  sites.growth_bytes = y.back() - y.front();
  if (!on_steps) {
    sites.per_s = slope;
    return;
  }
  sites.per_step = slope;
  if (first->at.t_s && last->at.t_s && *last->at.t_s > *first->at.t_s) {
    sites.per_s = slope * (x.back() - x.front()) / (*last->at.t_s - *first->at.t_s);
  }
}

// Memory that was asked for and never touched costs nothing.
double resident_share(const std::vector<const SiteTrack*>& tracks) {
  double live = 0.0;
  double resident = 0.0;
  for (const SiteTrack* track : tracks) {
    const SiteSample& last = track->last;
    live += as_double(last.live_bytes);
    resident += as_double(std::min(last.live_bytes, last.resident_bytes.value_or(last.live_bytes)));
  }
  return live > 0.0 ? resident / live : 1.0;
}

std::uint64_t allocated_blocks(const std::vector<const SiteTrack*>& tracks) {
  std::uint64_t blocks = 0;
  for (const SiteTrack* track : tracks) {
    blocks += track->last.alloc_blocks;
  }
  return blocks;
}

// Whether nearly all of the growth is from the end of the curve. Nobody has seen yet that it stays:
// a job puts its results together, or writes a checkpoint.
bool comes_last(const SeriesVerdict& judged) {
  constexpr double kEnd = 0.15;  // of the curve
  constexpr double kNearlyAll = 0.9;
  const std::vector<FloorPoint>& floor = judged.floor;
  if (judged.verdict != Verdict::kGrowing || floor.size() < kFewestFloorPoints) {
    return false;
  }
  const FloorPoint& first = floor.front();
  const FloorPoint& last = floor.back();
  const double from = last.x - kEnd * (last.x - first.x);
  const auto before = std::find_if(floor.rbegin(), floor.rend(),
                                   [&](const FloorPoint& point) { return point.x < from; });
  return before != floor.rend() &&
         last.floor_bytes - before->floor_bytes >=
             kNearlyAll * (last.floor_bytes - std::min(first.floor_bytes, before->floor_bytes));
}

void measure_growth(JudgedSites& sites) {
  const SeriesVerdict& judged = sites.series;
  if (const Pattern* pattern = judged.find({PatternKind::kLeak, PatternKind::kGrowth})) {
    sites.per_s = pattern->rate.bytes_per_s.value_or(0.0);
    sites.per_step = pattern->rate.bytes_per_step;
    sites.growth_bytes = pattern->growth_bytes;
    sites.since = pattern->from;
  } else {  // too few points for a pattern
    sites.growth_bytes = judged.last_floor_bytes - judged.first_floor_bytes;
    sites.since = judged.begin;
  }
  if (sites.per_s == 0.0 && judged.end.t_s && sites.since.t_s &&
      *judged.end.t_s > *sites.since.t_s) {
    sites.per_s = sites.growth_bytes / (*judged.end.t_s - *sites.since.t_s);
  }
  begin_with_the_first_byte(sites);
  fit_rate(sites);
  sites.came_at_once = allocated_blocks(sites.tracks) == 1 || comes_last(judged);
  const double share = resident_share(sites.tracks);
  sites.per_s *= share;
  sites.growth_bytes *= share;
  if (sites.per_step) {
    *sites.per_step *= share;
  }
}

// Between two samples in proportion to the time; beyond the ends what they say.
double interpolated(const std::vector<Cell>& cells, double t_s) {
  const auto after = std::upper_bound(cells.begin(), cells.end(), t_s,
                                      [](double at, const Cell& cell) { return at < cell.t_s; });
  if (after == cells.begin() || after == cells.end()) {
    return after == cells.begin() ? cells.front().mean_bytes() : cells.back().mean_bytes();
  }
  const Cell& before = *std::prev(after);
  const double share = (t_s - before.t_s) / (after->t_s - before.t_s);
  return before.mean_bytes() + share * (after->mean_bytes() - before.mean_bytes());
}

}  // namespace

JudgedSites judge_sites(const TracedProcess& process, std::vector<const SiteTrack*> tracks,
                        const StepTimes& steps, const Options& options) {
  JudgedSites sites;
  sites.process = &process;
  sites.tracks = std::move(tracks);
  const bool is_plain = sites.tracks.size() == 1 && !came_later(*sites.tracks.front(), process) &&
                        !process.last.has_ended;
  const Series curve = is_plain ? sites.tracks.front()->live : sum_of(sites.tracks, process);
  sites.series = judge(curve.with_steps([&](double t_s) { return steps.at(t_s); }), options);
  if (sites.grows()) {
    measure_growth(sites);
  }
  return sites;
}

double end_of(const JudgedSites& sites) {
  const double last_sample_s = sites.process->last_sample_s;
  return std::min(last_sample_s, sites.series.end.t_s.value_or(last_sample_s));
}

void add_held(SiteSample& sum, const SiteSample& held) {
  // Where nothing was measured the blocks are small: they are there.
  if (held.resident_bytes || sum.resident_bytes) {
    sum.resident_bytes =
        sum.resident_bytes.value_or(sum.live_bytes) + held.resident_bytes.value_or(held.live_bytes);
  }
  sum.live_bytes += held.live_bytes;
  sum.live_blocks += held.live_blocks;
  sum.alloc_bytes += held.alloc_bytes;
  sum.alloc_blocks += held.alloc_blocks;
  sum.peak_bytes += held.peak_bytes;
  sum.temporary_blocks += held.temporary_blocks;
}

SiteSample held_by(const JudgedSites& sites) {
  double last_bytes = 0.0;
  for (const SiteTrack* track : sites.tracks) {
    last_bytes += as_double(track->last.live_bytes);
  }
  const bool is_given_back = sites.grows() && last_bytes < 0.9 * sites.series.last_floor_bytes;
  SiteSample sum;
  for (const SiteTrack* track : sites.tracks) {
    add_held(sum, is_given_back ? track->highest : track->last);
  }
  return sum;
}

std::optional<double> change(const Series& series, double from_s, double to_s) {
  const std::vector<Cell>& cells = series.cells();
  if (cells.empty()) {
    return std::nullopt;
  }
  return interpolated(cells, to_s) - interpolated(cells, from_s);
}

}  // namespace tidemark::tracker
