// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/settling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "tracker/curve/models.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr std::size_t kEnoughFloorPoints = 4;
constexpr double kHalf = 0.5;
constexpr double kRiseSigmas = 4.0;
constexpr double kFloorJumpSigmas = 5.0;
constexpr double kRiseShare = 0.01;
constexpr double kSteadiestFloor = 5e-5;
constexpr double kFellOff = 0.3;
constexpr double kClearRise = 3.0;  // standard errors; many places are tried
constexpr double kRisingFloor = 0.02;
constexpr double kFarOut = 20.0;  // sigmas
constexpr std::size_t kPointsThatScatter = 12;
constexpr std::size_t kFewFloorPoints = 8;  // tell little about their noise
constexpr double kMostOfFew = 0.05;

bool long_enough(std::span<const double> x, std::size_t first) {
  const std::size_t count = x.size() - first;
  if (count >= kEnoughFloorPoints) {
    return true;
  }
  return count >= 2 && x.back() - x[first] >= kHalf * (x.back() - x.front());
}

// From its first quarter to its second half, and along its line: whichever is more.
double rise_of(std::span<const double> x, std::span<const double> y) {
  const std::size_t quarter = std::max<std::size_t>(1, y.size() / 4);
  const std::size_t half = y.size() / 2;
  const auto level = [&](std::size_t first, std::size_t last) {
    return median({y.begin() + static_cast<std::ptrdiff_t>(first),
                   y.begin() + static_cast<std::ptrdiff_t>(last)});
  };
  const double along = fit_line(x, y).slope * (x.back() - x.front());
  return std::max(along, level(half, y.size()) - level(0, quarter));
}

bool stands_still(std::span<const double> x, std::span<const double> y, double sigma_of_all) {
  // Differences see little of a noise that wanders; scatter around the line sees it, once there are
  // points enough to tell it from a bend.
  const double around =
      y.size() < kPointsThatScatter ? 0.0 : robust_sigma(residuals(theil_sen(x, y), x, y));
  const double sigma = std::max(sigma_of_all, around);
  const double level = std::abs(median({y.begin(), y.end()}));
  const double noisy = y.size() < kFewFloorPoints
                           ? std::min(kRiseSigmas * sigma, kMostOfFew * level)
                           : kRiseSigmas * sigma;
  if (rise_of(x, y) > std::max(noisy, kRiseShare * level)) {
    return false;
  }
  const double bar = std::max(kFloorJumpSigmas * std::sqrt(2.0) * sigma, kRiseShare / 2.0 * level);
  const std::vector<double> steps = differences(y);
  return std::none_of(steps.begin(), steps.end(), [&](double step) { return step > bar; });
}

// A noisy climb looks still when only its last part is looked at: where it rose before, it must be
// clear that its rate has fallen off.
bool fell_off(std::span<const double> x, std::span<const double> y, std::size_t first,
              double sigma) {
  const Kink kink = fit_kink_at(x, y, x[first]);
  const double before = kink.before * (x[first] - x.front());
  const double level = std::abs(median({y.begin(), y.end()}));
  // A small rise says nothing, unless it stands far out of the noise.
  if (before <= kRisingFloor * level && before <= kFarOut * sigma) {
    return true;
  }
  const Noise noise = noise_of(kink.residuals, 3, sigma / 4.0);
  return kink.after <= kFellOff * kink.before &&
         kink.before - kink.after >= kClearRise * noise.long_run * kink.bend_error;
}

// The end of a climb may be inside a stretch that counts as still: it begins where its level does.
std::size_t plateau_start(std::span<const double> x, std::span<const double> y, std::size_t first,
                          double sigma) {
  const double level = median({y.begin() + static_cast<std::ptrdiff_t>(first), y.end()});
  const double near = std::max(kRiseSigmas * sigma, kRiseShare * std::abs(level));
  std::size_t start = first;
  while (y[start] < level - near && long_enough(x, start + 1)) {
    ++start;
  }
  return start;
}

}  // namespace

double local_sigma(std::span<const double> y) {
  const double level = std::abs(median({y.begin(), y.end()}));
  return std::max(kSteadiestFloor * level, robust_sigma(differences(y)) / std::sqrt(2.0));
}

std::optional<std::size_t> still_since(std::span<const double> x, std::span<const double> y,
                                       double least_sigma) {
  const double sigma = std::max(local_sigma(y), least_sigma);
  for (std::size_t first = 0; first < x.size() && long_enough(x, first); ++first) {
    if (stands_still(x.subspan(first), y.subspan(first), sigma) &&
        (first == 0 || fell_off(x, y, first, sigma))) {
      return plateau_start(x, y, first, sigma);
    }
  }
  return std::nullopt;
}

namespace {

constexpr double kFirstShare = 0.1;
constexpr double kSlowedDown = 0.8;
constexpr std::size_t kManyPoints = 24;
constexpr double kSlowerSigmas = 2.0;  // standard errors, where there are points enough for some

double value_at(std::span<const double> x, std::span<const double> y, double at) {
  const auto right = std::upper_bound(x.begin(), x.end(), at);
  if (right == x.begin() || right == x.end()) {
    return right == x.begin() ? y.front() : y.back();
  }
  const auto i = static_cast<std::size_t>(right - x.begin());
  const double share = (at - x[i - 1]) / (x[i] - x[i - 1]);
  return y[i - 1] + share * (y[i] - y[i - 1]);
}

struct SettlingRate {
  double slope = 0.0;
  double error = 0.0;
};

SettlingRate rate_within(std::span<const double> x, std::span<const double> y, double from,
                         double to) {
  const auto first =
      static_cast<std::size_t>(std::lower_bound(x.begin(), x.end(), from) - x.begin());
  const auto last = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), to) - x.begin());
  if (x.size() < kManyPoints || last < first + 4) {
    return {(value_at(x, y, to) - value_at(x, y, from)) / (to - from), 0.0};
  }
  const auto xs = x.subspan(first, last - first);
  const auto ys = y.subspan(first, last - first);
  const Line line = fit_line(xs, ys);
  const Noise noise = noise_of(residuals(line, xs, ys), 2, 0.0);
  return {line.slope, noise.long_run / std::sqrt(std::max(spread(xs), 1e-300))};
}

}  // namespace

bool slows_down(std::span<const double> x, std::span<const double> y) {
  if (x.size() < 6) {
    return false;
  }
  const double span = x.back() - x.front();
  const double start = x.front() + kFirstShare * span;
  const double third = (x.back() - start) / 3.0;
  if (third <= 0.0) {
    return false;
  }
  std::array<SettlingRate, 3> rates;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double from = start + third * static_cast<double>(i);
    rates[i] = rate_within(x, y, from, from + third);
  }
  const auto slower = [](const SettlingRate& now, const SettlingRate& before) {
    const double error = std::hypot(now.error, before.error);
    return now.slope <= kSlowedDown * before.slope &&
           before.slope - now.slope >= kSlowerSigmas * error;
  };
  return rates[0].slope > 0.0 && slower(rates[1], rates[0]) && slower(rates[2], rates[1]);
}

namespace {

constexpr double kLateRiseSteps = 200;
constexpr double kLateRiseSeconds = 600;
constexpr std::size_t kSettledBlocks = 4;
constexpr std::size_t kLeastBesideOnset = 3;
constexpr double kCalm = 0.3;          // of the slope that follows
constexpr double kLowestPart = 0.15;   // of the rise
constexpr double kSurely = 2.0;        // standard errors
constexpr double kClearlyLess = 0.5;   // of the slope that follows
constexpr double kRiseEndPart = 0.15;  // of the rise
constexpr double kRiseEndShare = 0.3;  // of its slope
constexpr std::size_t kFewestOfEnd = 4;
constexpr std::size_t kBlocksBefore = 3;

// Where the rise began, as far as one bend tells: a flat start of the window is not part of it.
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

double shortest_late_rise(const Curve& curve) {
  return curve.axis == Axis::kSteps ? kLateRiseSteps : kLateRiseSeconds;
}

bool has_lasted(const Curve& curve, const Floor& floor, std::size_t judged_from, double needed) {
  const std::size_t first = begin_of_rise(floor, judged_from);
  const std::size_t onset = onset_after(floor, first);
  // Steps that are too few to be the axis are too few for this as well.
  const bool few_steps = curve.axis == Axis::kTime && !std::isnan(curve.points.back().step);
  if (few_steps || onset >= floor.x.size() || floor.x.size() - onset < kBlocksOfLateRise) {
    return false;
  }
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
      std::max(kFewestOfEnd, static_cast<std::size_t>(kRiseEndPart * static_cast<double>(count)));
  if (count < 2 * end) {
    return false;
  }
  const auto x = std::span(floor.x).last(end);
  const auto y = std::span(floor.bytes).last(end);
  const double error = local_sigma(floor.bytes) / std::sqrt(std::max(spread(x), 1e-300));
  return fit_line(x, y).slope + kSurely * error < kRiseEndShare * slope;
}

}  // namespace tidemark::tracker
