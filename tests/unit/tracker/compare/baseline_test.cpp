// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/baseline.h"

#include <array>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/judged_run.h"

namespace tidemark::tracker {
namespace {

using tests::kMiB;
using tests::leaking_run;
using tests::settled_run;

RunMeasure measure(const tests::HandMadeRun& run) {
  return measure_run(run.tracks, run.verdict).value_or(RunMeasure{});
}

std::vector<BaselineRun> runs_at(std::initializer_list<double> mib) {
  std::vector<BaselineRun> runs;
  for (const double each : mib) {
    BaselineRun run = baseline_run(measure(settled_run(each)));
    run.peak_bytes = 2 * each * kMiB;
    runs.push_back(run);
  }
  return runs;
}

BudgetState state_of_kind(const BudgetRows& rows, BudgetKind kind) {
  for (const BudgetRow& row : rows) {
    if (row.kind == kind) {
      return row.state;
    }
  }
  ADD_FAILURE() << "there is no row " << budget_name(kind);
  return BudgetState::kUndetermined;
}

TEST(BaselineRun, OfASettledRunHasNoGrowth) {
  const BaselineRun run = baseline_run(measure(settled_run(100)));

  EXPECT_EQ(run.rate_bytes_per_step, 0.0);
  EXPECT_EQ(run.rate_bytes_per_s, 0.0);
  EXPECT_DOUBLE_EQ(run.plateau_bytes, 100 * kMiB);
}

TEST(BaselineRun, OfAnUndeterminedRunKnowsNoRate) {
  RunMeasure undetermined = measure(settled_run(100));
  undetermined.growth.undetermined = true;
  RunMeasure without_steps = measure(settled_run(100));
  without_steps.growth.knows_steps = false;

  EXPECT_FALSE(baseline_run(undetermined).rate_bytes_per_s);
  EXPECT_FALSE(baseline_run(without_steps).rate_bytes_per_step);
  EXPECT_EQ(baseline_run(without_steps).rate_bytes_per_s, 0.0);
}

TEST(HighestUsual, IsTheToleranceWhereRunsResembleEachOther) {
  EXPECT_DOUBLE_EQ(highest_usual(std::array{100.0, 100.0, 100.0}, 0.05), 105.0);
}

TEST(HighestUsual, OfOneRunIsTwiceTheTolerance) {
  EXPECT_DOUBLE_EQ(highest_usual(std::array{100.0}, 0.05), 110.0);
}

TEST(HighestUsual, IsTheScatterWhereThatIsMore) {
  // Sigma 10; 6 for five degrees of freedom and a bit for the new run.
  const double usual = highest_usual(std::array{90.0, 110.0, 90.0, 110.0, 100.0, 100.0}, 0.05);

  EXPECT_GT(usual, 140.0);
  EXPECT_LT(usual, 170.0);
}

TEST(HighestUsual, OfNothingIsEverything) {
  EXPECT_EQ(highest_usual({}, 0.05), std::numeric_limits<double>::infinity());
}

TEST(Baseline, ComparesPlateauAndPeak) {
  const auto baseline = runs_at({100, 101, 99, 100});
  RunMeasure same = measure(settled_run(102));
  same.peak_bytes = 204 * kMiB;
  RunMeasure larger = measure(settled_run(120));
  larger.peak_bytes = 300 * kMiB;

  EXPECT_EQ(state_of(judge_against_baseline(baseline, same, 0.05)), BudgetState::kWithin);
  const BudgetRows rows = judge_against_baseline(baseline, larger, 0.05);
  EXPECT_EQ(state_of_kind(rows, BudgetKind::kBaselinePlateau), BudgetState::kExceeded);
  EXPECT_EQ(state_of_kind(rows, BudgetKind::kBaselinePeak), BudgetState::kExceeded);
  EXPECT_EQ(state_of_kind(rows, BudgetKind::kBaselineGrowth), BudgetState::kWithin);
}

TEST(Baseline, ALeakThatItDoesNotHaveIsTooMuch) {
  const BudgetRows rows =
      judge_against_baseline(runs_at({100, 100, 100}), measure(leaking_run(100, 1.0)), 0.05);

  EXPECT_EQ(state_of_kind(rows, BudgetKind::kBaselineGrowth), BudgetState::kExceeded);
}

TEST(Baseline, ALeakThatItHasIsNotUnlessItIsFaster) {
  std::vector<BaselineRun> baseline(3, baseline_run(measure(leaking_run(100, 1.0))));

  const auto growth = [&](double mib_per_step) {
    return state_of_kind(
        judge_against_baseline(baseline, measure(leaking_run(100, mib_per_step)), 0.05),
        BudgetKind::kBaselineGrowth);
  };

  EXPECT_EQ(growth(1.0), BudgetState::kWithin);
  EXPECT_EQ(growth(1.1), BudgetState::kWithin);  // 0.99 to 1.21
  EXPECT_EQ(growth(1.5), BudgetState::kExceeded);
}

TEST(Baseline, DoesNotComplainAboutGrowthBelowWhatTheRunCouldSee) {
  RunMeasure noisy = measure(leaking_run(100, 1.0));
  noisy.growth.smallest_detectable_per_step = 2 * kMiB;

  const BudgetRows rows = judge_against_baseline(runs_at({100, 100, 100}), noisy, 0.05);

  EXPECT_EQ(state_of_kind(rows, BudgetKind::kBaselineGrowth), BudgetState::kWithin);
}

TEST(Baseline, WithoutRatesComparesTheRestOnly) {
  auto baseline = runs_at({100, 100});
  for (BaselineRun& run : baseline) {
    run.rate_bytes_per_s.reset();
    run.rate_bytes_per_step.reset();
  }

  EXPECT_EQ(judge_against_baseline(baseline, measure(settled_run(100)), 0.05).size(), 2U);
  EXPECT_TRUE(judge_against_baseline({}, measure(settled_run(100)), 0.05).empty());
}

TEST(LevelChange, FindsWhereTheLevelRoseAndStayed) {
  const std::array values{100.0, 101.0, 99.0, 100.0, 130.0, 131.0, 129.0};

  const auto change = find_level_change(values, 0.02);

  ASSERT_TRUE(change);
  EXPECT_EQ(change->index, 4U);
  EXPECT_NEAR(change->before, 100.0, 0.01);
  EXPECT_NEAR(change->after, 130.0, 0.01);
}

TEST(LevelChange, FindsALeakThatCameAndALevelThatFell) {
  EXPECT_EQ(find_level_change(std::array{0.0, 0.0, 0.0, 0.0, 512.0, 512.0}, 0.02)->index, 4U);
  EXPECT_LT(find_level_change(std::array{9.0, 9.0, 9.0, 5.0, 5.0, 5.0}, 0.02)->after, 9.0);
}

TEST(LevelChange, DoesNotTakeScatterOutliersOrFewValuesForOne) {
  const std::array scatter{100.0, 110.0, 95.0, 105.0, 98.0, 108.0, 101.0, 93.0};
  const std::array outlier{100.0, 101.0, 99.0, 100.0, 140.0, 100.0, 101.0, 99.0};
  const std::array still{100.0, 100.0, 100.0, 100.0, 100.0, 100.0};
  const std::array small{100.0, 100.0, 100.0, 101.0, 101.0, 101.0};

  EXPECT_FALSE(find_level_change(scatter, 0.02));
  EXPECT_FALSE(find_level_change(outlier, 0.02));
  EXPECT_FALSE(find_level_change(still, 0.02));
  EXPECT_FALSE(find_level_change(small, 0.02));
  EXPECT_FALSE(find_level_change(std::array{1.0, 1.0, 9.0, 9.0}, 0.02));
}

}  // namespace
}  // namespace tidemark::tracker
