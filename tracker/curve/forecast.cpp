// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/forecast.h"

#include <algorithm>
#include <cmath>

#include "tracker/curve/models.h"
#include "tracker/curve/segments.h"
#include "tracker/curve/settling.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr double kLeastDoubt = 0.25;  // of a slope that is extrapolated
constexpr double kPower = 1.0;        // standard errors beyond the bar: seen nearly always
constexpr double kMostSigmas = 5.0;
constexpr double kEndsSoon = 3.0;

std::optional<double> asymptote(const Floor& floor) {
  const std::span<const double> x(floor.x);
  const std::span<const double> y(floor.bytes);
  const auto saturation = x.size() >= 6 ? fit_saturation(x, y) : std::nullopt;
  if (!saturation) {
    return std::nullopt;
  }
  const Line line = fit_line(x, y);
  const std::vector<double> rest = residuals(line, x, y);
  const double least = local_sigma(y) * 0.1;
  const Noise noise = noise_of(rest, 2, least);
  const double gain =
      information_criterion(sum_of_squares(rest), x.size(), noise.effective, 2, least) -
      information_criterion(saturation->squares, x.size(), noise.effective, 3, least);
  const bool ends = gain >= kDecisive && saturation->tau < kEndsSoon * (x.back() - x.front()) &&
                    saturation->plateau_bytes > y.back();
  return ends ? std::optional(saturation->plateau_bytes) : std::nullopt;
}

}  // namespace

GrowthEstimate estimate_growth(std::span<const double> x, std::span<const double> y) {
  GrowthEstimate estimate;
  if (x.size() < 2 || x.back() <= x.front()) {
    return estimate;
  }
  const Line line = x.size() >= 4 ? theil_sen(x, y) : fit_line(x, y);
  estimate.slope = line.slope;
  double doubt = kLeastDoubt * std::abs(line.slope);
  if (x.size() >= 4) {
    const Noise noise = noise_of(residuals(line, x, y), 2, 0.0);
    const double width = interval_width(degrees_of_freedom(noise, x.size()));
    doubt = std::max(doubt, width * noise.long_run / std::sqrt(std::max(spread(x), 1e-300)));
  }
  estimate.low = estimate.slope - doubt;
  estimate.high = estimate.slope + doubt;
  return estimate;
}

Forecast forecast(const Reading& reading, const Floor& floor, const Pace& pace,
                  std::optional<double> limit_bytes) {
  Forecast result;
  result.limit_bytes = limit_bytes;
  if (reading.verdict != Verdict::kLeak && reading.verdict != Verdict::kGrowing) {
    return result;
  }
  if (reading.verdict == Verdict::kGrowing) {
    result.asymptote_bytes = asymptote(floor);
    if (result.asymptote_bytes && limit_bytes && *result.asymptote_bytes < *limit_bytes) {
      return result;  // it ends before
    }
  }
  const Pattern* growth = reading.find(PatternKind::kLeak);
  growth = growth != nullptr ? growth : reading.find(PatternKind::kGrowth);
  if (growth == nullptr || !limit_bytes || floor.points.empty()) {
    return result;
  }
  const double left = std::max(0.0, *limit_bytes - floor.points.back().ceiling_bytes);
  const auto time_left = [&](const std::optional<double>& rate) -> std::optional<double> {
    return rate && *rate > 0.0 ? std::optional(left / *rate) : std::nullopt;
  };
  if (!std::isnan(pace.seconds_per_x)) {
    result.in_s_low = time_left(growth->rate.high_bytes_per_s);
    result.in_s_high = time_left(growth->rate.low_bytes_per_s);
  }
  if (!std::isnan(pace.steps_per_x)) {
    result.in_steps_low = time_left(growth->rate.high_bytes_per_step);
    result.in_steps_high = time_left(growth->rate.low_bytes_per_step);
  }
  return result;
}

double smallest_detectable(std::span<const double> x, std::span<const double> y,
                           const std::vector<Jump>& jumps, double sigma_bytes, const Gates& gates) {
  const double span = x.back() - x.front();
  if (x.size() < 2 || span <= 0.0) {
    return gates.least_rate;
  }
  const SlopeWithJumps without = take_out_jumps(x, y, jumps);
  const double least = x.size() < kFewestBlocks ? sigma_bytes : 0.0;  // so few tell no noise
  const Noise noise = noise_around_segments(x, without.smooth, least);
  const double error = noise.long_run / std::sqrt(std::max(without.information, 1e-300));
  const double sigmas =
      std::min(kMostSigmas,
               gates.strictness * significance_bar(degrees_of_freedom(noise, x.size())) + kPower);
  const double level = std::abs(median({y.begin(), y.end()}));
  return std::max({sigmas * error, gates.least_rate, gates.least_rise_share * level / span});
}

}  // namespace tidemark::tracker
