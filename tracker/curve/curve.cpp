// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr std::size_t kFewSteps = 6;  // with fewer the curve is judged on time
constexpr double kBackShare = 0.05;
constexpr double kInstant = 1e-9;   // what lies closer together is one place
constexpr double kDipDepth = 0.03;  // of the level
constexpr double kDipSigmas = 8.0;
constexpr double kDipSidesAgree = 0.4;  // of the depth
constexpr double kSideSigmas = 4.0;
constexpr double kFewDips = 3.0;
constexpr double kRareShare = 0.02;
constexpr double kTeardownShare = 0.05;        // of the points, but some at least
constexpr std::size_t kFewestForTeardown = 6;  // points: of fewer, none can be spared
constexpr std::size_t kShortestTeardown = 2;   // a part of it, then all
constexpr double kTeardownDepth = 0.05;
constexpr double kTeardownNoise = 4.0;  // sigmas below the last high that are still up
constexpr std::size_t kPointsBeforeEnd = 8;
constexpr double kNextSample = 2.0;  // times as far as the others are apart
constexpr double kEndSigmas = 8.0;
constexpr double kEndDepth = 0.001;

// Steps, unless they are few, or the counter starts again and again: then it is no axis.
Axis choose_axis(const std::vector<Cell>& cells) {
  std::size_t known = 0;
  std::size_t forward = 0;
  std::size_t back = 0;
  double highest = -std::numeric_limits<double>::infinity();
  bool time_known = false;
  for (const Cell& cell : cells) {
    time_known = time_known || !std::isnan(cell.t_s);
    if (!std::isnan(cell.step)) {
      ++known;
      forward += cell.step > highest ? 1U : 0U;
      back += cell.step < highest ? 1U : 0U;
      highest = std::max(highest, cell.step);
    }
  }
  const bool orderly = static_cast<double>(back) <= kBackShare * static_cast<double>(known);
  return (forward >= kFewSteps && orderly) || !time_known ? Axis::kSteps : Axis::kTime;
}

CurvePoint point_of(const Cell& cell, double x) {
  return {x, cell.t_s, cell.step, cell.min_bytes, cell.max_bytes, cell.mean_bytes(), cell.count};
}

void join(CurvePoint& into, const CurvePoint& next) {
  const auto a = static_cast<double>(into.samples);
  const auto b = static_cast<double>(next.samples);
  into.mean_bytes = (into.mean_bytes * a + next.mean_bytes * b) / (a + b);
  into.min_bytes = std::min(into.min_bytes, next.min_bytes);
  into.max_bytes = std::max(into.max_bytes, next.max_bytes);
  into.samples += next.samples;
}

// How much neighbouring samples differ, whatever the curve does.
double scatter_of_points(const std::vector<CurvePoint>& points) {
  std::vector<double> values;
  values.reserve(points.size());
  for (const CurvePoint& point : points) {
    values.push_back(point.mean_bytes);
  }
  return core_sigma(differences(values)) / std::sqrt(2.0);
}

// A sampler that missed a process for one sample: the value falls far and is back at once. What
// happens often is the target's own doing.
std::uint64_t repair_dips(std::vector<CurvePoint>& points) {
  if (points.size() < kFewSteps) {
    return 0;
  }
  const double scatter = scatter_of_points(points);
  std::vector<std::size_t> dips;
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    const double before = points[i - 1].min_bytes;
    const double after = points[i + 1].min_bytes;
    const double depth = std::min(before, after) - points[i].min_bytes;
    if (depth > std::max(kDipSigmas * scatter, kDipDepth * std::min(before, after)) &&
        std::abs(before - after) <= std::max(kDipSidesAgree * depth, kSideSigmas * scatter)) {
      dips.push_back(i);
    }
  }
  const auto most = std::max(kFewDips, kRareShare * static_cast<double>(points.size()));
  if (static_cast<double>(dips.size()) > most) {
    return 0;
  }
  for (const std::size_t i : dips) {
    CurvePoint& point = points[i];
    point.min_bytes = std::min(points[i - 1].min_bytes, points[i + 1].min_bytes);
    point.mean_bytes = std::max(point.mean_bytes, point.min_bytes);
    point.max_bytes = std::max(point.max_bytes, point.mean_bytes);
  }
  return dips.size();
}

// The largest fall from a high to a later low, up to `end`.
double largest_fall(const std::vector<CurvePoint>& points, std::size_t end) {
  double high = points.front().max_bytes;
  double fall = 0.0;
  for (std::size_t i = 0; i < end; ++i) {
    high = std::max(high, points[i].max_bytes);
    fall = std::max(fall, high - points[i].min_bytes);
  }
  return fall;
}

// A final fall, without an earlier one half that size: the job is giving its memory back, at once
// or in several samples.
std::optional<Pattern> cut_teardown(std::vector<CurvePoint>& points) {
  if (points.size() < kFewestForTeardown) {
    return std::nullopt;
  }
  const auto share = static_cast<std::size_t>(kTeardownShare * static_cast<double>(points.size()));
  const std::size_t tail = std::max(share, kShortestTeardown);
  const auto before_fall = points.end() - static_cast<std::ptrdiff_t>(tail) - 1;
  const auto high = std::max_element(
      before_fall, points.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.min_bytes < b.min_bytes; });
  const double level = high->min_bytes;
  const double fall = level - points.back().min_bytes;
  if (fall <= 0.0 || fall < kTeardownDepth * level) {
    return std::nullopt;
  }
  const double noise = std::min(kTeardownNoise * scatter_of_points(points), fall / 2.0);
  auto start = static_cast<std::size_t>(high - points.begin()) + 1;
  for (std::size_t i = start; i < points.size(); ++i) {
    start = points[i].min_bytes >= level - noise ? i + 1 : start;
  }
  if (largest_fall(points, start) >= fall / 2.0) {
    return std::nullopt;
  }
  Pattern pattern;
  pattern.kind = PatternKind::kTeardown;
  pattern.from = moment_of(points[start]);
  pattern.to = moment_of(points.back());
  pattern.growth_bytes = points.back().min_bytes - level;
  points.resize(start);
  return pattern;
}

// Whether the last sample lies far below where those before it lead to, as none of them did: it
// may have found the job at its end, with the first of its memory given back. Too little for a
// teardown, but enough to bend a line. The next sample tells.
bool is_giving_back(const std::vector<CurvePoint>& points) {
  if (points.size() < kFewestForTeardown + 1) {
    return false;
  }
  const std::size_t count = std::min(points.size() - 1, kPointsBeforeEnd);
  std::vector<double> x;
  std::vector<double> bytes;
  for (std::size_t i = points.size() - 1 - count; i + 1 < points.size(); ++i) {
    x.push_back(points[i].x);
    bytes.push_back(points[i].min_bytes);
  }
  const double apart = (x.back() - x.front()) / static_cast<double>(count - 1);
  if (points.back().x - x.back() > kNextSample * apart) {
    return false;  // much may have happened since
  }
  const Line line = fit_line(x, bytes);
  const double missing = line.value(points.back().x) - points.back().min_bytes;
  const double sigma =
      std::sqrt(sum_of_squares(residuals(line, x, bytes)) / static_cast<double>(count - 2));
  return missing > std::max(kEndSigmas * sigma, kEndDepth * points.back().min_bytes) &&
         largest_fall(points, points.size() - 1) < missing / 2.0;
}

}  // namespace

Moment moment_of(const CurvePoint& point) {
  Moment moment;
  if (!std::isnan(point.t_s)) {
    moment.t_s = point.t_s;
  }
  if (!std::isnan(point.step)) {
    moment.step = point.step;
  }
  return moment;
}

Curve prepare(const Series& series) {
  const std::vector<Cell>& cells = series.cells();
  Curve curve;
  curve.axis = choose_axis(cells);
  curve.points.reserve(cells.size());
  for (const Cell& cell : cells) {
    const double x = curve.axis == Axis::kSteps ? cell.step : cell.t_s;
    if (std::isnan(x)) {
      continue;  // before the first step, or after the last
    }
    const CurvePoint point = point_of(cell, x);
    if (curve.points.empty() || x > curve.points.back().x + kInstant) {
      curve.points.push_back(point);
    } else {  // the same place again, or a step counter that went back: part of what is there
      join(curve.points.back(), point);
    }
  }
  curve.dips_repaired = repair_dips(curve.points);
  curve.teardown = cut_teardown(curve.points);
  if (is_giving_back(curve.points)) {
    if (curve.teardown) {
      curve.teardown->from = moment_of(curve.points.back());
    }
    curve.points.pop_back();
  }
  return curve;
}

}  // namespace tidemark::tracker
