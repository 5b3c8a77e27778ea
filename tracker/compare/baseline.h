// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "tracker/compare/budget.h"

namespace tidemark::tracker {

// One run as a baseline keeps it.
struct BaselineRun {
  // 0: no growth was seen. nullopt: undetermined, or there are no steps.
  std::optional<double> rate_bytes_per_s;
  std::optional<double> rate_bytes_per_step;
  double plateau_bytes = 0.0;
  double peak_bytes = 0.0;
};
BaselineRun baseline_run(const RunMeasure& measure);

// Where a new value begins to stand out of earlier ones: above their mean by more than their
// scatter explains (one chance in some thousand), and by more than `tolerance` of it. Of a single
// value the scatter is not known: twice the tolerance.
double highest_usual(std::span<const double> values, double tolerance);

// Growth, plateau and peak of a run beside those of the baseline; what the baseline does not know
// has no row.
BudgetRows judge_against_baseline(std::span<const BaselineRun> baseline, const RunMeasure& measure,
                                  double tolerance);

// A level that changed once and stayed.
struct LevelChange {
  std::size_t index = 0;  // of the first value after it
  double before = 0.0;
  double after = 0.0;
};
// The clearest change in a row of values, for example one per commit: at least three before it and
// two after it, beyond their scatter and `least_share` of the level. nullopt: there is none.
std::optional<LevelChange> find_level_change(std::span<const double> values, double least_share);

}  // namespace tidemark::tracker
