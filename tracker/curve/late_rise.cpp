// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/late_rise.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "tracker/curve/models.h"
#include "tracker/curve/settling.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr double kLateRiseSteps = 200;
constexpr double kLateRiseSeconds = 600;
constexpr std::size_t kSettledBlocks = 4;
constexpr std::size_t kLeastBesideOnset = 3;
constexpr double kCalm = 0.3;         // of the slope that follows
constexpr double kLowestPart = 0.15;  // of the rise
constexpr double kSurely = 2.0;       // standard errors
constexpr double kClearlyLess = 0.5;  // of the slope that follows
constexpr double kEndPart = 0.15;     // of the rise
constexpr double kEndShare = 0.3;     // of its slope
constexpr std::size_t kFewestOfEnd = 4;
constexpr std::size_t kBlocksBefore = 3;

// Where the rise began, as far as one bend tells: a calm start of the window is not part of it.
std::size_t onset_after(const Floor& floor, std::size_t first) {
  if (first >= floor.x.size()) {
    return first;
  }
  const auto x = std::span(floor.x).subspan(first);
  const auto y = std::span(floor.bytes).subspan(first);
  const auto kink = fit_kink(x, y, kLeastBesideOnset);
  const bool began_late = kink && kink->after > 0.0 && kink->before < kCalm * kink->after;
  return began_late ? first + kink->index : first;
}

// A straight rise may have been judged from a small bend in it on. It is as old as the blocks
// before that rise as well.
std::size_t begin_of_rise(const Floor& floor, std::size_t first) {
  if (first + 2 > floor.x.size()) {
    return first;
  }
  const double slope =
      fit_line(std::span(floor.x).subspan(first), std::span(floor.bytes).subspan(first)).slope;
  const auto rises_before = [&](std::size_t at) {
    const std::size_t before = at - std::min(at, kBlocksBefore);
    return floor.bytes[at] - floor.bytes[before] >=
           kClearlyLess * slope * (floor.x[at] - floor.x[before]);
  };
  while (slope > 0.0 && first > 0 && rises_before(first)) {
    --first;
  }
  return first;
}

}  // namespace

bool has_lasted(const Curve& curve, const Floor& floor, std::size_t judged_from) {
  const std::size_t first = begin_of_rise(floor, judged_from);
  const std::size_t onset = onset_after(floor, first);
  // Steps that are too few to be the axis are too few for this as well.
  const bool few_steps = curve.axis == Axis::kTime && !std::isnan(curve.points.back().step);
  if (few_steps || onset >= floor.x.size() || floor.x.size() - onset < kBlocksOfLateRise) {
    return false;
  }
  const double needed = curve.axis == Axis::kSteps ? kLateRiseSteps : kLateRiseSeconds;
  // Where the rise began is known to a block or two; and since it left its lowest part it must have
  // lasted for as long, but for that part.
  if (curve.points.back().x - floor.starts[onset] < needed + 2.0 * floor.block_width) {
    return false;
  }
  const double low = median({floor.bytes.begin() + static_cast<std::ptrdiff_t>(first),
                             floor.bytes.begin() + static_cast<std::ptrdiff_t>(first + 3)});
  const double high = median({floor.bytes.end() - 3, floor.bytes.end()});
  std::size_t left = first;
  for (std::size_t i = first; i < floor.x.size(); ++i) {
    left = floor.bytes[i] <= low + kLowestPart * (high - low) ? i : left;
  }
  return curve.points.back().x - floor.starts[left] >=
         (1.0 - kLowestPart) * needed + floor.block_width;
}

bool has_settled_before(const Floor& floor, std::size_t onset, double slope_after) {
  if (onset < kSettledBlocks) {
    return false;
  }
  const auto x = std::span(floor.x).first(onset);
  const auto y = std::span(floor.bytes).first(onset);
  const auto settled = still_since(x, y);
  if (!settled || onset - *settled < kSettledBlocks) {
    return false;
  }
  const auto calm_x = x.subspan(*settled);
  const Line before = fit_line(calm_x, y.subspan(*settled));
  const double error = local_sigma(floor.bytes) / std::sqrt(std::max(spread(calm_x), 1e-300));
  return before.slope <= kCalm * slope_after &&
         before.slope + kSurely * error <= kClearlyLess * slope_after;
}

bool has_stopped(const Floor& floor, std::size_t first, double slope) {
  const std::size_t count = floor.x.size() - std::min(first, floor.x.size());
  const std::size_t end =
      std::max(kFewestOfEnd, static_cast<std::size_t>(kEndPart * static_cast<double>(count)));
  if (count < 2 * end) {
    return false;
  }
  const auto x = std::span(floor.x).last(end);
  const auto y = std::span(floor.bytes).last(end);
  const double error = local_sigma(floor.bytes) / std::sqrt(std::max(spread(x), 1e-300));
  return fit_line(x, y).slope + kSurely * error < kEndShare * slope;
}

}  // namespace tidemark::tracker
