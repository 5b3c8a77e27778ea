// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/verdict_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "tracker/curve/models.h"
#include "tracker/curve/settling.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {

GrowthRate rate_on_axes(const Pace& pace, double slope, double low, double high) {
  GrowthRate rate;
  if (!std::isnan(pace.seconds_per_x) && pace.seconds_per_x > 0.0) {
    rate.bytes_per_s = slope / pace.seconds_per_x;
    rate.low_bytes_per_s = low / pace.seconds_per_x;
    rate.high_bytes_per_s = high / pace.seconds_per_x;
  }
  if (!std::isnan(pace.steps_per_x) && pace.steps_per_x > 0.0) {
    rate.bytes_per_step = slope / pace.steps_per_x;
    rate.low_bytes_per_step = low / pace.steps_per_x;
    rate.high_bytes_per_step = high / pace.steps_per_x;
  }
  return rate;
}

Pattern warmup_pattern(const Floor& floor, const Pace& pace, std::size_t plateau) {
  Pattern pattern;
  pattern.kind = PatternKind::kWarmup;
  pattern.from = floor.points.front().at;
  pattern.to = floor.points[plateau].at;
  pattern.growth_bytes = floor.bytes[plateau] - floor.bytes.front();
  const std::size_t count = plateau + 1;
  const Line line = theil_sen(std::span(floor.x).first(count), std::span(floor.bytes).first(count));
  pattern.rate = rate_on_axes(pace, line.slope, line.slope, line.slope);
  return pattern;
}

Pattern jump_pattern(const Floor& floor, const Jump& jump) {
  Pattern pattern;
  pattern.kind = jump.height_bytes > 0.0 ? PatternKind::kStep : PatternKind::kRelease;
  pattern.from = pattern.to = floor.points[jump.index].at;
  pattern.height_bytes = std::abs(jump.height_bytes);
  pattern.growth_bytes = jump.height_bytes;
  pattern.count = 1;
  return pattern;
}

std::optional<Pattern> spikes_pattern(const Curve& curve, const Cycles& cycles, const Pace& pace) {
  if (cycles.excursions.empty()) {
    return std::nullopt;
  }
  Pattern spikes;
  spikes.kind = PatternKind::kSpikes;
  spikes.from = moment_of(curve.points[cycles.excursions.front().from]);
  spikes.to = moment_of(curve.points[cycles.excursions.back().to]);
  spikes.height_bytes = cycles.height_bytes;
  for (const Excursion& excursion : cycles.excursions) {
    spikes.highest_bytes = std::max(spikes.highest_bytes, excursion.height_bytes);
  }
  spikes.count = cycles.excursions.size();
  if (cycles.period) {
    if (!std::isnan(pace.seconds_per_x)) {
      spikes.period_s = *cycles.period * pace.seconds_per_x;
    }
    if (!std::isnan(pace.steps_per_x)) {
      spikes.period_steps = *cycles.period * pace.steps_per_x;
    }
  }
  return spikes;
}

void sort_by_place(std::vector<Pattern>& patterns, Axis axis) {
  const auto begin = [&](const Pattern& pattern) {
    return (axis == Axis::kSteps ? pattern.from.step : pattern.from.t_s).value_or(0.0);
  };
  std::stable_sort(patterns.begin(), patterns.end(),
                   [&](const Pattern& a, const Pattern& b) { return begin(a) < begin(b); });
}

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

Forecast forecast(const SeriesVerdict& judged, const Floor& floor, const Pace& pace,
                  std::optional<double> limit_bytes) {
  Forecast result;
  result.limit_bytes = limit_bytes;
  if (judged.verdict != Verdict::kLeak && judged.verdict != Verdict::kGrowing) {
    return result;
  }
  if (judged.verdict == Verdict::kGrowing) {
    result.asymptote_bytes = asymptote(floor);
    if (result.asymptote_bytes && limit_bytes && *result.asymptote_bytes < *limit_bytes) {
      return result;  // it ends before
    }
  }
  const Pattern* growth = judged.find({PatternKind::kLeak, PatternKind::kGrowth});
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

namespace {

// The share of right verdicts among generated curves of seed 1, by how far the deciding figure was
// beyond its bar. Between two entries the value is interpolated.
struct Entry {
  double margin;
  double right;
};

template <std::size_t kCount>
double look_up(const std::array<Entry, kCount>& table, double margin) {
  if (margin <= table.front().margin) {
    return table.front().right;
  }
  for (std::size_t i = 1; i < kCount; ++i) {
    if (margin <= table[i].margin) {
      const double share = (margin - table[i - 1].margin) / (table[i].margin - table[i - 1].margin);
      return table[i - 1].right + share * (table[i].right - table[i - 1].right);
    }
  }
  return table.back().right;
}

// Slope in units of its bar.
constexpr std::array<Entry, 4> kLeak{{{1.0, 0.93}, {1.5, 0.96}, {2.5, 0.98}, {4.0, 0.99}}};
// Height in units of its bar. Small excursions are often noise.
constexpr std::array<Entry, 4> kSpikes{{{1.0, 0.45}, {1.4, 0.6}, {1.8, 0.93}, {2.5, 0.98}}};
// Points.
constexpr std::array<Entry, 4> kQuiet{{{6.0, 0.85}, {30.0, 0.95}, {100.0, 0.98}, {400.0, 0.99}}};
constexpr double kManySpikes = 6;
constexpr double kRegularSpikes = 0.95;
constexpr double kUndecided = 0.5;

std::optional<Evidence> find(const SeriesVerdict& judged, EvidenceKind kind) {
  const auto it = std::find_if(judged.evidence.begin(), judged.evidence.end(),
                               [&](const Evidence& evidence) { return evidence.kind == kind; });
  return it == judged.evidence.end() ? std::nullopt : std::optional(*it);
}

double of_spikes(const SeriesVerdict& judged) {
  const auto height = find(judged, EvidenceKind::kSpikeHeight);
  const double margin =
      height && height->bar.value_or(0.0) > 0.0 ? height->value / *height->bar : 1.0;
  const double right = look_up(kSpikes, margin);
  const Pattern* spikes = judged.find(PatternKind::kSpikes);
  const bool regular = spikes != nullptr && (spikes->period_s || spikes->period_steps) &&
                       static_cast<double>(spikes->count) >= kManySpikes;
  return regular ? std::max(right, kRegularSpikes) : right;
}

}  // namespace

double confidence_of(const SeriesVerdict& judged, const GrowthTest& growth) {
  if (judged.undetermined) {
    return kUndecided;
  }
  const double quiet = look_up(kQuiet, static_cast<double>(judged.samples));
  switch (judged.verdict) {
    case Verdict::kLeak: {
      const bool by_slope = growth.shape != LeakShape::kSteps && growth.error > 0.0;
      return look_up(kLeak, by_slope ? growth.slope / growth.error / growth.bar : 1.5);
    }
    case Verdict::kSpikes:
      return std::min(quiet, of_spikes(judged));
    case Verdict::kStable:
    case Verdict::kWarmup:
    case Verdict::kGrowing:
      return quiet;
  }
  return kUndecided;
}

}  // namespace tidemark::tracker
