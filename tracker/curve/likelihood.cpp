// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/likelihood.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "tracker/curve/models.h"
#include "tracker/curve/settling.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr std::size_t kFewestForForm = 8;  // blocks
constexpr std::size_t kLeastBesideBend = 3;
constexpr double kBetter = 4.0;       // difference of information criteria
constexpr double kFlatBefore = 0.15;  // of the slope that follows
constexpr double kClear = 2.5;        // standard errors
constexpr double kMostInOneJump = 0.5;
constexpr double kOneJumpOfFewShare = 0.75;  // below kFewestForForm blocks
constexpr std::size_t kFewestForJump = 4;

// The odds of a leak by form. Most growth that ends slows down before it does; a leak does not.
constexpr double kOddsOfStraight = 2.0;
constexpr double kOddsOfSlowing = 0.12;
constexpr double kOddsOfEnded = 0.06;
constexpr double kOddsOfUneven = 0.4;
constexpr double kOddsOfFilling = 1.5;  // a job that was meant to run fits into its machine
// Growth that ends takes a hundredth of its allowance as often as all of it: uniform in the
// logarithm between these.
constexpr double kShortestShare = 1.0 / 180.0;
constexpr double kShortestLateShare = 1.0 / 60.0;
constexpr double kFewestLeft = 0.05;
constexpr double kLeastChance = 0.04;
constexpr double kMostChance = 0.94;

// Of all growth that ends, what still goes on after that share of the longest time.
double still_going(double share, double shortest) {
  const double left = std::log(1.0 / std::max(share, shortest)) / std::log(1.0 / shortest);
  return std::clamp(left, kFewestLeft, 1.0);
}

struct Fits {
  double straight = 0.0;  // information criteria
  double saturating = 0.0;
  double bent = 0.0;
  std::optional<Kink> kink;
  double noise = 0.0;
};

Fits fit_forms(std::span<const double> x, std::span<const double> y) {
  Fits fits;
  const double least = local_sigma(y) / 4.0;
  const std::vector<double> rest = residuals(fit_line(x, y), x, y);
  const Noise noise = noise_around_segments(x, y, least);
  fits.noise = noise.long_run;
  const auto criterion = [&](double squares, std::size_t parameters) {
    return information_criterion(squares, x.size(), noise.effective, parameters, least);
  };
  fits.straight = criterion(sum_of_squares(rest), 2);
  const auto saturation = fit_saturation(x, y);
  fits.saturating = saturation ? criterion(saturation->squares, 3) : fits.straight + kBetter;
  fits.kink = fit_kink(x, y, kLeastBesideBend);
  fits.bent = fits.kink ? criterion(fits.kink->squares, 4) : fits.straight + kBetter;
  return fits;
}

// One block of the rise has most of it.
bool is_one_jump(std::span<const double> y) {
  const std::vector<double> steps = differences(y);
  const double highest = *std::max_element(steps.begin(), steps.end());
  const double share = y.size() < kFewestForForm ? kOneJumpOfFewShare : kMostInOneJump;
  return highest > share * (y.back() - y.front());
}

}  // namespace

Rise last_rise(const Floor& floor) {
  const auto lowest = std::min_element(floor.bytes.begin(), floor.bytes.end());
  Rise rise{static_cast<std::size_t>(lowest - floor.bytes.begin()), RiseForm::kStraight};
  const auto x = std::span(floor.x).subspan(rise.first);
  const auto y = std::span(floor.bytes).subspan(rise.first);
  if (x.size() >= kFewestForJump && is_one_jump(y)) {
    rise.form = RiseForm::kUneven;
    return rise;
  }
  if (x.size() < kFewestForForm) {
    return rise;
  }
  const Fits fits = fit_forms(x, y);
  const bool bends =
      fits.kink && fits.straight - fits.bent >= kBetter && fits.bent < fits.saturating;
  if (bends) {
    const Kink& kink = *fits.kink;
    const bool goes_on = kink.after > kClear * fits.noise * kink.after_error;
    if (!goes_on) {
      rise.form = RiseForm::kEnded;
    } else if (kink.before < kFlatBefore * kink.after || kink.before > kink.after) {
      rise.first += kink.index;
    }
    return rise;
  }
  if (fits.straight - fits.saturating >= kBetter) {
    rise.form = RiseForm::kSlowing;
  }
  return rise;
}

double leak_chance(const Floor& floor, const Rise& rise, const RiseTime& time) {
  double odds = time.fills_limit ? kOddsOfFilling : 1.0;
  switch (rise.form) {
    case RiseForm::kStraight:
      odds *= kOddsOfStraight;
      break;
    case RiseForm::kSlowing:
      odds *= kOddsOfSlowing;
      break;
    case RiseForm::kEnded:
      odds *= kOddsOfEnded;
      break;
    case RiseForm::kUneven:
      odds *= kOddsOfUneven;
      break;
  }
  // A rise that began before our eyes is as old as it is; any other as the process.
  double left = still_going(time.spent_share, kShortestShare);
  if (rise.first > 0 && time.shortest_late > 0.0) {
    const double lasted = (floor.x.back() - floor.x[rise.first]) / time.shortest_late;
    left = std::max(left, still_going(lasted, kShortestLateShare));
  }
  odds /= left;
  return std::clamp(odds / (1.0 + odds), kLeastChance, kMostChance);
}

}  // namespace tidemark::tracker
