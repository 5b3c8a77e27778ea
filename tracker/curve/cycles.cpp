// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/cycles.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr double kLeastHeight = 0.02;  // of the level
constexpr double kStepSigmas = 6.0;
constexpr double kMarginalSigmas = 8.0;  // from low to high: noise alone reaches six
constexpr double kSharpSigmas = 10.0;
constexpr double kComesBack = 0.5;    // of its rise
constexpr double kOffTheFloor = 0.1;  // of its height
constexpr double kRegular = 0.3;
constexpr std::size_t kManyExcursions = 6;  // fewer are regular by chance
constexpr std::size_t kTrendBlocks = 20;
constexpr std::size_t kFewCyclePoints = 8;  // too few to tell noise from excursions:
constexpr double kLeastOfFew = 0.1;         // only large ones count

// How the values of this curve scatter: from one sample to the next, and around their trend.
// Neighbours that resemble each other make the first much smaller than the second.
struct Scatter {
  double step = 0.0;
  double marginal = 0.0;
};

Scatter scatter_of(const std::vector<CurvePoint>& points) {
  std::vector<double> values;
  values.reserve(points.size());
  for (const CurvePoint& point : points) {
    values.push_back(point.mean_bytes);
  }
  Scatter scatter;
  scatter.step = core_sigma(differences(values)) / std::sqrt(2.0);

  const std::size_t block = std::max<std::size_t>(8, values.size() / kTrendBlocks);
  std::vector<double> rest;
  rest.reserve(values.size());
  for (std::size_t start = 0; start < values.size(); start += block) {
    const std::size_t end = std::min(values.size(), start + block);
    std::vector<double> part(values.begin() + static_cast<std::ptrdiff_t>(start),
                             values.begin() + static_cast<std::ptrdiff_t>(end));
    const double centre = median(part);
    for (const double value : part) {
      rest.push_back(value - centre);
    }
  }
  scatter.marginal = core_sigma(rest);
  return scatter;
}

// Highs and lows that alternate, each at least `least` away from its neighbours.
struct Turn {
  std::size_t at = 0;
  bool high = false;
};

std::vector<Turn> turns_of(const std::vector<CurvePoint>& points, double least) {
  std::vector<Turn> turns;
  std::size_t low = 0;
  std::size_t high = 0;
  bool rising = true;
  bool undecided = true;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (undecided || !rising) {
      low = points[i].min_bytes < points[low].min_bytes ? i : low;
    }
    if (undecided || rising) {
      high = points[i].max_bytes > points[high].max_bytes ? i : high;
    }
    const bool fell = points[high].max_bytes - points[i].min_bytes >= least;
    const bool rose = points[i].max_bytes - points[low].min_bytes >= least;
    if ((undecided || rising) && fell && high < i) {
      if (undecided) {
        turns.push_back({low < high ? low : 0, false});
      }
      turns.push_back({high, true});
      rising = undecided = false;
      low = i;
    } else if ((undecided || !rising) && rose && low < i) {
      turns.push_back({low, false});
      rising = true;
      undecided = false;
      high = i;
    }
  }
  if (!undecided && !rising) {
    turns.push_back({low, false});
  }
  return turns;
}

double largest_step(const std::vector<CurvePoint>& points, std::size_t from, std::size_t to) {
  double largest = 0.0;
  for (std::size_t i = from + 1; i <= to; ++i) {
    largest = std::max(largest, std::abs(points[i].mean_bytes - points[i - 1].mean_bytes));
  }
  return largest;
}

double width_of(const std::vector<CurvePoint>& points, const Excursion& excursion) {
  const double level = std::max(points[excursion.from].min_bytes, points[excursion.to].min_bytes) +
                       kOffTheFloor * excursion.height_bytes;
  std::size_t first = excursion.peak;
  while (first > excursion.from && points[first - 1].min_bytes > level) {
    --first;
  }
  std::size_t last = excursion.peak;
  while (last < excursion.to && points[last + 1].min_bytes > level) {
    ++last;
  }
  const double before = points[first > 0 ? first - 1 : first].x;
  const double after = points[std::min(last + 1, points.size() - 1)].x;
  return after - before;
}

std::optional<Excursion> excursion_at(const std::vector<CurvePoint>& points,
                                      const std::vector<Turn>& turns, std::size_t high) {
  if (high == 0 || high + 1 >= turns.size()) {
    return std::nullopt;
  }
  Excursion found{turns[high - 1].at, turns[high].at, turns[high + 1].at, 0.0, 0.0};
  const double peak = points[found.peak].max_bytes;
  const double rise = peak - points[found.from].min_bytes;
  const double fall = peak - points[found.to].min_bytes;
  if (fall < kComesBack * rise) {
    return std::nullopt;
  }
  found.height_bytes = std::min(rise, fall);
  found.width = width_of(points, found);
  return found;
}

std::optional<double> regular_period(const std::vector<CurvePoint>& points,
                                     const std::vector<Excursion>& excursions) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < excursions.size(); ++i) {
    gaps.push_back(points[excursions[i].peak].x - points[excursions[i - 1].peak].x);
  }
  if (gaps.size() < 2) {
    return std::nullopt;
  }
  const double typical = median(gaps);
  std::vector<double> misses;
  misses.reserve(gaps.size());
  for (const double gap : gaps) {
    misses.push_back(std::abs(gap - typical));
  }
  const bool regular = typical > 0.0 && quantile(misses, 0.8) <= kRegular * typical;
  return regular ? std::optional(typical) : std::nullopt;
}

double typical_doubt(const std::vector<CurvePoint>& points,
                     const std::vector<Excursion>& excursions) {
  std::vector<double> doubts;
  doubts.reserve(excursions.size());
  for (const Excursion& excursion : excursions) {
    doubts.push_back(doubt_about_low(points, excursion.to));
  }
  return median(std::move(doubts));
}

}  // namespace

double doubt_about_low(const std::vector<CurvePoint>& points, std::size_t low) {
  if (low == 0 || low + 1 >= points.size()) {
    return 0.0;
  }
  const CurvePoint& before = points[low - 1];
  const CurvePoint& after = points[low + 1];
  const double fall = before.min_bytes - points[low].min_bytes;
  const double rise = after.min_bytes - points[low].min_bytes;
  const double gap_before = points[low].x - before.x;
  const double gap_after = after.x - points[low].x;
  // Each side, drawn on through the gap on the other side, and no further than that side reaches.
  const double depth = std::max(std::min(rise * gap_before / gap_after, fall),
                                std::min(fall * gap_after / gap_before, rise));
  // Among many samples one was near the low.
  return std::max(0.0, depth) / static_cast<double>(points[low].samples);
}

Cycles find_cycles(const Curve& curve) {
  Cycles cycles;
  const std::vector<CurvePoint>& points = curve.points;
  if (points.size() < 3) {
    return cycles;
  }
  std::vector<double> levels;
  levels.reserve(points.size());
  for (const CurvePoint& point : points) {
    levels.push_back(point.mean_bytes);
  }
  const bool few = points.size() < kFewCyclePoints;
  const Scatter scatter = few ? Scatter{} : scatter_of(points);
  const double least = std::max((few ? kLeastOfFew : kLeastHeight) * median(std::move(levels)),
                                kStepSigmas * scatter.step);
  cycles.height_bar_bytes = least;

  if (least <= 0.0) {
    return cycles;
  }
  const std::vector<Turn> turns = turns_of(points, least);
  std::vector<Excursion> candidates;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].high) {
      if (auto found = excursion_at(points, turns, i); found && found->height_bytes >= least) {
        candidates.push_back(*found);
      }
    }
  }
  const bool regular =
      candidates.size() >= kManyExcursions && regular_period(points, candidates).has_value();
  for (const Excursion& candidate : candidates) {
    const bool tall = candidate.height_bytes >= kMarginalSigmas * scatter.marginal;
    const double edge = largest_step(points, candidate.from, candidate.to);
    const bool sharp =
        edge >= kSharpSigmas * scatter.step && edge >= kComesBack * candidate.height_bytes;
    if (tall || sharp || regular) {
      cycles.excursions.push_back(candidate);
    }
  }
  std::vector<double> heights;
  std::vector<double> widths;
  for (const Excursion& excursion : cycles.excursions) {
    heights.push_back(excursion.height_bytes);
    widths.push_back(excursion.width);
  }
  cycles.height_bytes = median(std::move(heights));
  cycles.width = quantile(std::move(widths), 0.9);
  cycles.period = regular_period(points, cycles.excursions);
  cycles.low_doubt_bytes = typical_doubt(points, cycles.excursions);
  return cycles;
}

}  // namespace tidemark::tracker
