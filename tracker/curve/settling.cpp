// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/settling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tracker/curve/models.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr std::size_t kEnoughPoints = 4;
constexpr double kHalf = 0.5;
constexpr double kRiseSigmas = 4.0;
constexpr double kJumpSigmas = 5.0;
constexpr double kRiseShare = 0.01;
constexpr double kQuietest = 5e-5;
constexpr double kFellOff = 0.3;
constexpr double kClearly = 3.0;  // standard errors; many places are tried
constexpr double kRising = 0.02;
constexpr std::size_t kPointsThatScatter = 12;
constexpr std::size_t kFewPoints = 8;  // tell little about their noise
constexpr double kMostOfFew = 0.05;

bool long_enough(std::span<const double> x, std::size_t first) {
  const std::size_t count = x.size() - first;
  if (count >= kEnoughPoints) {
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
  const double noisy = y.size() < kFewPoints ? std::min(kRiseSigmas * sigma, kMostOfFew * level)
                                             : kRiseSigmas * sigma;
  if (rise_of(x, y) > std::max(noisy, kRiseShare * level)) {
    return false;
  }
  const double bar = std::max(kJumpSigmas * std::sqrt(2.0) * sigma, kRiseShare / 2.0 * level);
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
  if (before <= kRising * level) {
    return true;
  }
  const Noise noise = noise_of(kink.residuals, 3, sigma / 4.0);
  return kink.after <= kFellOff * kink.before &&
         kink.before - kink.after >= kClearly * noise.long_run * kink.bend_error;
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
  return std::max(kQuietest * level, robust_sigma(differences(y)) / std::sqrt(2.0));
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

}  // namespace tidemark::tracker
