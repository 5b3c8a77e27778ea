// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/baseline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr double kQuietestRuns = 0.002;  // of the level: runs do not resemble each other more
constexpr std::size_t kLeastBefore = 3;
constexpr std::size_t kLeastAfter = 2;
constexpr std::size_t kFewestValues = 6;
constexpr double kManyPlaces = 1.3;  // the place was picked for its change: it must be surer

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squares_around_mean(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0.0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  return squares;
}

std::optional<double> rate_of(const MeasuredGrowth& growth, std::optional<double> rate,
                              bool unit_is_known) {
  if (growth.undetermined || !unit_is_known) {
    return std::nullopt;
  }
  return growth.kind ? rate : std::optional(0.0);
}

std::optional<BudgetRow> judge_rate(std::span<const BaselineRun> baseline,
                                    const RunMeasure& measure, double tolerance) {
  const bool by_step = measure.growth.knows_steps &&
                       std::any_of(baseline.begin(), baseline.end(), [](const BaselineRun& run) {
                         return run.rate_bytes_per_step.has_value();
                       });
  std::vector<double> rates;
  for (const BaselineRun& run : baseline) {
    if (const auto rate = by_step ? run.rate_bytes_per_step : run.rate_bytes_per_s) {
      rates.push_back(*rate);
    }
  }
  if (rates.empty()) {
    return std::nullopt;
  }
  // What this run could not have seen is no reason to complain about it.
  const MeasuredGrowth& growth = measure.growth;
  const double unseen =
      (by_step ? growth.smallest_detectable_per_step : growth.smallest_detectable_per_s)
          .value_or(0.0);
  const double usual = std::max(highest_usual(rates, tolerance), unseen);
  const Rate limit{usual, by_step ? RateUnit::kStep : RateUnit::kSecond, 1.0};
  return judge_growth(BudgetKind::kBaselineGrowth, measure, limit);
}

BudgetRow judge_level(BudgetKind kind, std::span<const double> values, double measured,
                      double tolerance) {
  BudgetRow row;
  row.kind = kind;
  row.measured = measured;
  row.limit = highest_usual(values, tolerance);
  row.state = measured > *row.limit ? BudgetState::kExceeded : BudgetState::kWithin;
  return row;
}

}  // namespace

BaselineRun baseline_run(const RunMeasure& measure) {
  const MeasuredGrowth& growth = measure.growth;
  BaselineRun run;
  run.rate_bytes_per_s = rate_of(growth, growth.rate.bytes_per_s, true);
  run.rate_bytes_per_step = rate_of(growth, growth.rate.bytes_per_step, growth.knows_steps);
  run.plateau_bytes = measure.plateau_bytes;
  run.peak_bytes = measure.peak_bytes;
  return run;
}

double highest_usual(std::span<const double> values, double tolerance) {
  if (values.empty()) {
    return std::numeric_limits<double>::infinity();
  }
  const double mean = mean_of(values);
  const double share = tolerance * std::abs(mean);
  const auto count = static_cast<double>(values.size());
  if (values.size() < 2) {
    return mean + 2.0 * share;
  }
  const double sigma = std::sqrt(squares_around_mean(values) / (count - 1.0));
  // Two runs tell so little of the scatter that nothing would ever stand out of it.
  const double freedom = std::max(count - 1.0, 2.0);
  const double scatter = significance_bar(freedom) * sigma * std::sqrt(1.0 + 1.0 / count);
  return mean + std::max(share, scatter);
}

BudgetRows judge_against_baseline(std::span<const BaselineRun> baseline, const RunMeasure& measure,
                                  double tolerance) {
  BudgetRows rows;
  if (baseline.empty()) {
    return rows;
  }
  if (const auto rate = judge_rate(baseline, measure, tolerance)) {
    rows.push_back(*rate);
  }
  std::vector<double> plateaus;
  std::vector<double> peaks;
  for (const BaselineRun& run : baseline) {
    plateaus.push_back(run.plateau_bytes);
    peaks.push_back(run.peak_bytes);
  }
  rows.push_back(
      judge_level(BudgetKind::kBaselinePlateau, plateaus, measure.plateau_bytes, tolerance));
  rows.push_back(judge_level(BudgetKind::kBaselinePeak, peaks, measure.peak_bytes, tolerance));
  return rows;
}

std::optional<LevelChange> find_level_change(std::span<const double> values, double least_share) {
  const std::size_t count = values.size();
  if (count < kFewestValues) {
    return std::nullopt;
  }
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = kLeastBefore; i + kLeastAfter <= count; ++i) {
    const double squares =
        squares_around_mean(values.first(i)) + squares_around_mean(values.subspan(i));
    if (squares < least) {
      least = squares;
      best = i;
    }
  }
  const LevelChange change{best, mean_of(values.first(best)), mean_of(values.subspan(best))};
  const double freedom = static_cast<double>(count) - 2.0;
  const double level = std::max(std::abs(change.before), std::abs(change.after));
  const double sigma = std::max(std::sqrt(least / freedom), kQuietestRuns * level);
  const double error =
      sigma * std::sqrt(1.0 / static_cast<double>(best) + 1.0 / static_cast<double>(count - best));
  const double height = std::abs(change.after - change.before);
  const bool is_clear = height > kManyPlaces * significance_bar(freedom) * error &&
                        height >= least_share * std::abs(change.before) && height > 0.0;
  return is_clear ? std::optional(change) : std::nullopt;
}

}  // namespace tidemark::tracker
