// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/budget.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/judged_run.h"

namespace tidemark::tracker {
namespace {

using tests::HandMadeRun;
using tests::kMiB;
using tests::leaking_run;
using tests::settled_run;

constexpr Rate kMibPerStep{kMiB, RateUnit::kStep, 1.0};

std::optional<RunMeasure> measure(const HandMadeRun& run) {
  return measure_run(run.tracks, run.verdict);
}

// Rising, and nobody can tell whether it ends.
HandMadeRun growing_run(double mib_per_step) {
  HandMadeRun run = leaking_run(100, mib_per_step);
  run.tree().patterns[0].kind = PatternKind::kGrowth;
  run.tree().verdict = Verdict::kGrowing;
  run.verdict.verdict = Verdict::kGrowing;
  run.tree().undetermined = true;
  run.tree().needs = Needs{{}, 40.0, {}};
  return run;
}

MeasuredRun measured(const HandMadeRun& run) {
  MeasuredRun result;
  result.memory = measure(run);
  return result;
}

const BudgetRow& row_of(const BudgetRows& rows, BudgetKind kind) {
  static const BudgetRow kNone;
  for (const BudgetRow& row : rows) {
    if (row.kind == kind) {
      return row;
    }
  }
  ADD_FAILURE() << "there is no row " << budget_name(kind);
  return kNone;
}

BudgetRow judge_rate(const HandMadeRun& run, const std::optional<Rate>& limit) {
  return judge_growth(BudgetKind::kGrowth, measure(run), limit);
}

TEST(RunMeasure, TakesThePeakFromAllSamplesAlsoThoseThatWereCutOff) {
  HandMadeRun run = settled_run(100);
  run.tracks.tracks[0].of(Metric::kFootprint).add(500.0, 1000.0, 900 * kMiB);

  const auto result = measure(run);

  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->peak_bytes, 900 * kMiB);
  EXPECT_DOUBLE_EQ(result->plateau_bytes, 100 * kMiB);
  EXPECT_TRUE(result->has_settled);
}

TEST(RunMeasure, DoesNotTakeTheLastMomentForThePlateau) {
  HandMadeRun run = settled_run(100);
  run.tree().floor.back().floor_bytes = kMiB;
  run.tree().last_floor_bytes = kMiB;

  EXPECT_DOUBLE_EQ(measure(run)->plateau_bytes, 100 * kMiB);
}

TEST(RunMeasure, TakesTheEndOfWhatRisesForThePlateau) {
  HandMadeRun run = settled_run(100);
  run.tree().last_floor_bytes = 150 * kMiB;

  EXPECT_DOUBLE_EQ(measure(run)->plateau_bytes, 150 * kMiB);
}

TEST(RunMeasure, IsNothingWithoutAVerdict) { EXPECT_FALSE(measure_run(RunTracks{}, std::nullopt)); }

TEST(GrowthBudget, FailsOnlyWhenTheLowerBoundIsAboveIt) {
  // 0.9 to 1.1 of the rate.
  const BudgetRow far = judge_rate(leaking_run(100, 3.0), kMibPerStep);
  const BudgetRow inside = judge_rate(leaking_run(100, 1.05), kMibPerStep);

  EXPECT_EQ(far.state, BudgetState::kExceeded);
  EXPECT_EQ(far.unit, BudgetUnit::kBytesPerStep);
  EXPECT_DOUBLE_EQ(*far.measured, 3 * kMiB);
  EXPECT_DOUBLE_EQ(*far.low, 2.7 * kMiB);
  EXPECT_DOUBLE_EQ(*far.limit, kMiB);
  EXPECT_EQ(inside.state, BudgetState::kWithin);
  EXPECT_GT(*inside.measured, *inside.limit);
}

TEST(GrowthBudget, ALowerBoundThatIsTheBudgetIsWithinIt) {
  HandMadeRun run = leaking_run(100, 1.0);
  run.tree().patterns[0].rate.low_bytes_per_step = kMiB;

  EXPECT_EQ(judge_rate(run, kMibPerStep).state, BudgetState::kWithin);

  run.tree().patterns[0].rate.low_bytes_per_step = kMiB + 1;
  EXPECT_EQ(judge_rate(run, kMibPerStep).state, BudgetState::kExceeded);
}

TEST(GrowthBudget, CountsPerMinuteWhenItIsGivenPerMinute) {
  // Two steps a second: 2 MiB/s.
  const BudgetRow row =
      judge_rate(leaking_run(100, 1.0), Rate{200 * kMiB, RateUnit::kSecond, 60.0});

  EXPECT_EQ(row.unit, BudgetUnit::kBytesPerSecond);
  EXPECT_DOUBLE_EQ(*row.measured, 2 * kMiB);
  EXPECT_EQ(row.state, BudgetState::kWithin);
  EXPECT_EQ(judge_rate(leaking_run(100, 1.0), Rate{100 * kMiB, RateUnit::kSecond, 60.0}).state,
            BudgetState::kExceeded);
}

TEST(GrowthBudget, NothingAndNoBudgetAreExceededByAnyLeak) {
  EXPECT_EQ(judge_rate(leaking_run(100, 0.01), Rate{}).state, BudgetState::kExceeded);
  EXPECT_EQ(judge_rate(leaking_run(100, 0.01), std::nullopt).state, BudgetState::kExceeded);
  EXPECT_EQ(judge_rate(settled_run(100), Rate{}).state, BudgetState::kWithin);
  EXPECT_EQ(judge_rate(leaking_run(100, 0.01), Rate{}).unit, BudgetUnit::kBytesPerStep);
}

TEST(GrowthBudget, ADriftIsNoLeakButMayExceedABudgetThatIsSmaller) {
  HandMadeRun run = leaking_run(100, 0.5);
  run.tree().patterns[0].kind = PatternKind::kDrift;
  run.tree().verdict = Verdict::kStable;
  run.verdict.verdict = Verdict::kStable;

  EXPECT_EQ(judge_rate(run, Rate{}).state, BudgetState::kWithin);
  EXPECT_EQ(judge_rate(run, std::nullopt).state, BudgetState::kWithin);
  EXPECT_EQ(judge_rate(run, kMibPerStep).state, BudgetState::kWithin);
  EXPECT_EQ(judge_rate(run, Rate{0.1 * kMiB, RateUnit::kStep, 1.0}).state, BudgetState::kExceeded);
}

TEST(GrowthBudget, WhatStillGrowsIsUndeterminedAndSaysHowLongItTakes) {
  const BudgetRow row = judge_rate(growing_run(3.0), kMibPerStep);

  EXPECT_EQ(row.state, BudgetState::kUndetermined);
  EXPECT_EQ(row.doubt, BudgetDoubt::kStillGrowing);
  ASSERT_TRUE(row.needs);
  EXPECT_EQ(row.needs->more_steps, 40.0);
}

TEST(GrowthBudget, WhatGrowsMoreSlowlyThanItMayIsWithinWhateverItIs) {
  EXPECT_EQ(judge_rate(growing_run(0.5), kMibPerStep).state, BudgetState::kWithin);
  EXPECT_EQ(judge_rate(growing_run(0.5), Rate{}).state, BudgetState::kUndetermined);
  EXPECT_EQ(judge_rate(growing_run(0.95), kMibPerStep).state, BudgetState::kUndetermined);
}

TEST(GrowthBudget, CountsWhatStillGrowsFromTheEndOfItsAllowanceOn) {
  // 100 MiB more at its start, and hardly anything after step 100.
  HandMadeRun run = growing_run(3.0);
  run.tree().allowance_end = Moment{{}, 100.0};
  for (FloorPoint& point : run.tree().floor) {
    point.floor_bytes += (point.x < 60 ? -100 : 0.001 * point.x) * kMiB;
  }

  const BudgetRow row = judge_rate(run, kMibPerStep);
  run.tree().allowance_end = Moment{{}, 390.0};
  const BudgetRow too_long = judge_rate(run, kMibPerStep);

  EXPECT_EQ(row.state, BudgetState::kWithin);
  EXPECT_NEAR(*row.measured, 0.001 * kMiB, 0.0001 * kMiB);
  EXPECT_EQ(too_long.state, BudgetState::kUndetermined);
}

TEST(GrowthBudget, TooFewSamplesAreUndetermined) {
  HandMadeRun run = settled_run(100);
  run.tree().undetermined = true;

  const BudgetRow row = judge_rate(run, kMibPerStep);

  EXPECT_EQ(row.state, BudgetState::kUndetermined);
  EXPECT_EQ(row.doubt, BudgetDoubt::kTooFew);
}

// The same run, as one sees it that knows no steps.
HandMadeRun without_steps(HandMadeRun run) {
  run.tree().axis = Axis::kTime;
  run.tree().smallest_detectable_per_step.reset();
  for (Pattern& pattern : run.tree().patterns) {
    pattern.rate.bytes_per_step.reset();
    pattern.rate.low_bytes_per_step.reset();
    pattern.rate.high_bytes_per_step.reset();
  }
  return run;
}

TEST(GrowthBudget, NoGrowthIsWithinABudgetPerStepWhereNoStepsAreKnown) {
  const BudgetRow row = judge_rate(without_steps(settled_run(100)), kMibPerStep);

  EXPECT_EQ(row.state, BudgetState::kWithin);
  EXPECT_EQ(row.measured, std::nullopt);
  EXPECT_EQ(judge_rate(without_steps(settled_run(100)), Rate{}).state, BudgetState::kWithin);
}

TEST(GrowthBudget, GrowthPerStepIsUndeterminedWhereNoStepsAreKnown) {
  HandMadeRun run = without_steps(leaking_run(100, 2.0));
  run.tree().floor.back().floor_bytes += 10 * kMiB;

  const BudgetRow leak = judge_rate(run, kMibPerStep);

  EXPECT_EQ(leak.state, BudgetState::kUndetermined);
  EXPECT_EQ(leak.doubt, BudgetDoubt::kStepsUnknown);
}

TEST(GrowthBudget, GrowthThatOneStepMayHaveIsWithinHoweverManyStepsThereWere) {
  HandMadeRun run = without_steps(growing_run(2.0));
  std::vector<FloorPoint>& floor = run.tree().floor;
  for (std::size_t i = 0; i < floor.size(); ++i) {  // a start, and hardly anything after it
    floor[i].floor_bytes = (i < 2 ? 10 : 100) * kMiB;
  }

  floor.back().floor_bytes = 100.9 * kMiB;
  EXPECT_EQ(judge_rate(run, kMibPerStep).state, BudgetState::kWithin);
  floor.back().floor_bytes = 101.1 * kMiB;
  EXPECT_EQ(judge_rate(run, kMibPerStep).state, BudgetState::kUndetermined);
}

TEST(GrowthBudget, TooFewSamplesAreUndeterminedWithoutStepsToo) {
  HandMadeRun run = without_steps(settled_run(100));
  run.tree().undetermined = true;

  EXPECT_EQ(judge_rate(run, kMibPerStep).doubt, BudgetDoubt::kTooFew);
}

TEST(Budgets, JudgeLevelsAgainstTheirLimits) {
  MeasuredRun run = measured(settled_run(100));
  run.memory->peak_bytes = 300 * kMiB;
  run.memory->most_processes = 5;
  run.retained.bytes = 10 * kMiB;
  Budgets budgets;
  budgets.memory.peak_bytes = 300 * kMiB;  // exactly
  budgets.memory.plateau_bytes = 99 * kMiB;
  budgets.memory.retained_bytes = 10 * kMiB - 1;
  budgets.processes = 4;

  const BudgetRows rows = judge_budgets(budgets, run);

  EXPECT_EQ(row_of(rows, BudgetKind::kPeak).state, BudgetState::kWithin);
  EXPECT_EQ(row_of(rows, BudgetKind::kPlateau).state, BudgetState::kExceeded);
  EXPECT_EQ(row_of(rows, BudgetKind::kRetained).state, BudgetState::kExceeded);
  EXPECT_EQ(row_of(rows, BudgetKind::kProcesses).state, BudgetState::kExceeded);
  EXPECT_EQ(row_of(rows, BudgetKind::kProcesses).unit, BudgetUnit::kCount);
  EXPECT_EQ(state_of(rows), BudgetState::kExceeded);
}

TEST(Budgets, NoBudgetAtAllMeansNoLeak) {
  EXPECT_EQ(judge_budgets({}, measured(settled_run(100))).size(), 1U);
  EXPECT_EQ(state_of(judge_budgets({}, measured(leaking_run(100, 1.0)))), BudgetState::kExceeded);
  EXPECT_EQ(state_of(judge_budgets({}, measured(growing_run(1.0)))), BudgetState::kUndetermined);
}

TEST(Budgets, BesideOthersGrowthIsToldOnlyWhenItIsALeak) {
  Budgets budgets;
  budgets.memory.peak_bytes = 1000 * kMiB;

  EXPECT_EQ(judge_budgets(budgets, measured(growing_run(1.0))).size(), 1U);
  EXPECT_EQ(state_of(judge_budgets(budgets, measured(growing_run(1.0)))), BudgetState::kWithin);
  EXPECT_EQ(state_of(judge_budgets(budgets, measured(leaking_run(100, 1.0)))),
            BudgetState::kExceeded);
  budgets.memory.growth_is_off = true;
  EXPECT_EQ(state_of(judge_budgets(budgets, measured(leaking_run(100, 1.0)))),
            BudgetState::kWithin);
}

TEST(Budgets, APlateauThatMayGoOnRisingIsUndeterminedUntilItIsTooHigh) {
  MeasuredRun run = measured(growing_run(1.0));
  run.memory->plateau_bytes = 100 * kMiB;
  Budgets budgets;
  budgets.memory.growth_is_off = true;
  budgets.memory.plateau_bytes = 200 * kMiB;

  EXPECT_EQ(state_of(judge_budgets(budgets, run)), BudgetState::kUndetermined);
  budgets.memory.plateau_bytes = 50 * kMiB;
  EXPECT_EQ(state_of(judge_budgets(budgets, run)), BudgetState::kExceeded);
}

TEST(Budgets, GpuMemoryHasBudgetsOfItsOwn) {
  MeasuredRun run = measured(settled_run(100));
  Budgets budgets;
  budgets.gpu.growth = Rate{};
  budgets.gpu.peak_bytes = kMiB;
  budgets.gpu.retained_bytes = 0;

  const BudgetRows unseen = judge_budgets(budgets, run);
  run.gpu = measure(leaking_run(50, 1.0));
  run.gpu->peak_bytes = 60 * kMiB;
  run.retained.gpu_bytes = 0.0;
  const BudgetRows seen = judge_budgets(budgets, run);

  EXPECT_EQ(row_of(unseen, BudgetKind::kGpuPeak).doubt, BudgetDoubt::kNoSample);
  EXPECT_EQ(row_of(unseen, BudgetKind::kGpuRetained).state, BudgetState::kUndetermined);
  EXPECT_EQ(row_of(seen, BudgetKind::kGpuGrowth).state, BudgetState::kExceeded);
  EXPECT_EQ(row_of(seen, BudgetKind::kGpuPeak).state, BudgetState::kExceeded);
  EXPECT_EQ(row_of(seen, BudgetKind::kGpuRetained).state, BudgetState::kWithin);
}

TEST(Budgets, ARunThatWasStoppedShowsNoMoreThanWhatItHasExceeded) {
  MeasuredRun run = measured(settled_run(100));
  run.was_interrupted = true;
  Budgets budgets;
  budgets.memory.growth = kMibPerStep;
  budgets.memory.peak_bytes = kMiB;

  const BudgetRows rows = judge_budgets(budgets, run);

  EXPECT_EQ(row_of(rows, BudgetKind::kGrowth).doubt, BudgetDoubt::kInterrupted);
  EXPECT_EQ(row_of(rows, BudgetKind::kPeak).state, BudgetState::kExceeded);
}

TEST(JobBudget, IsExceededWhenEachJobLeavesMoreThanTheOneBefore) {
  const std::array<double, 4> rising{10 * kMiB, 20 * kMiB, 30 * kMiB, 41 * kMiB};
  const std::array<double, 4> once{0, 50 * kMiB, 50 * kMiB, 50 * kMiB};

  const BudgetRow row = judge_jobs(rising, kMiB);

  EXPECT_EQ(row.state, BudgetState::kExceeded);
  EXPECT_DOUBLE_EQ(*row.measured, 31.0 / 3.0 * kMiB);
  EXPECT_DOUBLE_EQ(*row.low, 10 * kMiB);
  EXPECT_EQ(judge_jobs(rising, 10 * kMiB).state, BudgetState::kWithin);
  EXPECT_EQ(judge_jobs(once, kMiB).state, BudgetState::kWithin);
  EXPECT_EQ(judge_jobs(std::array<double, 1>{5.0}, kMiB).state, BudgetState::kUndetermined);
}

BudgetRow row_with(BudgetKind kind, BudgetState state, double measured = 1.0) {
  BudgetRow row;
  row.kind = kind;
  row.state = state;
  row.measured = measured;
  return row;
}

TEST(Repeats, ExceedOnlyWhatEachOfThemExceeds) {
  const auto growth = [](BudgetState state, double measured) {
    return BudgetRows{row_with(BudgetKind::kGrowth, state, measured)};
  };
  const std::vector<BudgetRows> always{growth(BudgetState::kExceeded, 3),
                                       growth(BudgetState::kExceeded, 2)};
  const std::vector<BudgetRows> sometimes{growth(BudgetState::kExceeded, 3),
                                          growth(BudgetState::kWithin, 1)};
  const std::vector<BudgetRows> perhaps{growth(BudgetState::kExceeded, 3),
                                        growth(BudgetState::kUndetermined, 1)};

  EXPECT_EQ(state_of(best_of(always)), BudgetState::kExceeded);
  EXPECT_DOUBLE_EQ(*best_of(always)[0].measured, 2);  // the least of them
  EXPECT_EQ(state_of(best_of(sometimes)), BudgetState::kWithin);
  EXPECT_EQ(state_of(best_of(perhaps)), BudgetState::kUndetermined);
  EXPECT_TRUE(best_of({}).empty());
}

TEST(Repeats, ALeakThatOneOfThemDoesNotHaveIsNone) {
  const std::vector<BudgetRows> runs{{row_with(BudgetKind::kGrowth, BudgetState::kExceeded),
                                      row_with(BudgetKind::kPeak, BudgetState::kWithin)},
                                     {row_with(BudgetKind::kPeak, BudgetState::kWithin)}};
  const std::vector<BudgetRows> reversed{runs[1], runs[0]};

  EXPECT_EQ(state_of(best_of(runs)), BudgetState::kWithin);
  EXPECT_EQ(state_of(best_of(reversed)), BudgetState::kWithin);
}

TEST(Jobs, ExceedWhatOneOfThemExceeds) {
  const std::vector<BudgetRows> jobs{{row_with(BudgetKind::kPeak, BudgetState::kWithin, 1)},
                                     {row_with(BudgetKind::kGrowth, BudgetState::kUndetermined),
                                      row_with(BudgetKind::kPeak, BudgetState::kExceeded, 3)},
                                     {row_with(BudgetKind::kPeak, BudgetState::kExceeded, 2)}};

  const BudgetRows rows = worst_of(jobs);

  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].kind, BudgetKind::kGrowth);
  EXPECT_EQ(rows[1].state, BudgetState::kExceeded);
  EXPECT_DOUBLE_EQ(*rows[1].measured, 3);
}

}  // namespace
}  // namespace tidemark::tracker
