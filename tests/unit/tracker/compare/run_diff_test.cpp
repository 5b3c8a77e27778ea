// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/run_diff.h"

#include <gtest/gtest.h>

#include "tests/support/judged_run.h"

namespace tidemark::tracker {
namespace {

using tests::add_role;
using tests::add_spikes;
using tests::HandMadeRun;
using tests::kMiB;
using tests::leaking_run;
using tests::settled_run;

RunDiff compare(const HandMadeRun& a, const HandMadeRun& b) {
  auto diff = compare_runs(a.judged(), b.judged(), Metric::kFootprint);
  EXPECT_TRUE(diff.has_value());
  return diff.value_or(RunDiff{});
}

const DiffRow& row_of(const RunDiff& diff, DiffWhat what) {
  static const DiffRow kNone;
  const DiffRow* const row = diff.find(what);
  EXPECT_NE(row, nullptr);
  return row != nullptr ? *row : kNone;
}

TEST(RunDiff, ALeakThatIsGoneIsBetterWhateverElseChanged) {
  const RunDiff diff = compare(leaking_run(1000, 2), settled_run(1500));

  EXPECT_EQ(diff.verdict, Change::kBetter);
  EXPECT_EQ(diff.overall, Change::kBetter);
  EXPECT_EQ(row_of(diff, DiffWhat::kPeak).change, Change::kWorse);
  const DiffRow& growth = row_of(diff, DiffWhat::kGrowthRate);
  EXPECT_EQ(growth.change, Change::kBetter);
  EXPECT_DOUBLE_EQ(*growth.difference(), -2 * kMiB);
}

TEST(RunDiff, ANewLeakIsWorse) {
  const RunDiff diff = compare(settled_run(1000), leaking_run(500, 2));

  EXPECT_EQ(diff.verdict, Change::kWorse);
  EXPECT_EQ(diff.overall, Change::kWorse);
}

TEST(RunDiff, TheFloorOfALeakIsNotSettled) {
  const RunDiff diff = compare(leaking_run(1000, 2), settled_run(1000));

  const DiffRow& floor = row_of(diff, DiffWhat::kSettledFloor);
  EXPECT_FALSE(floor.a.value);
  EXPECT_DOUBLE_EQ(*floor.b.value, 1000 * kMiB);
  EXPECT_EQ(floor.change, Change::kUnclear);
}

TEST(RunDiff, RatesWhoseIntervalsExplainTheDifferenceAreTheSame) {
  const RunDiff close = compare(leaking_run(100, 2.0), leaking_run(100, 2.2));
  const RunDiff apart = compare(leaking_run(100, 2.0), leaking_run(100, 2.5));

  // Half widths 0.20 and 0.22 MiB: together 0.297.
  EXPECT_NEAR(*row_of(close, DiffWhat::kGrowthRate).noise, 0.297 * kMiB, 0.001 * kMiB);
  EXPECT_EQ(row_of(close, DiffWhat::kGrowthRate).change, Change::kSame);
  EXPECT_EQ(close.overall, Change::kSame);
  EXPECT_EQ(row_of(apart, DiffWhat::kGrowthRate).change, Change::kWorse);
  EXPECT_EQ(apart.overall, Change::kWorse);
}

TEST(RunDiff, ARateThatMovesTheFloorByLessThanOnePercentIsNoDifference) {
  // 0.02 MiB x 400 steps = 8 MiB of 1000.
  const RunDiff diff = compare(leaking_run(1000, 0.04), leaking_run(1000, 0.02));

  EXPECT_EQ(row_of(diff, DiffWhat::kGrowthRate).change, Change::kSame);
}

TEST(RunDiff, ARunThatCouldHideTheOthersLeakDoesNotShowThatTheyAreAlike) {
  HandMadeRun blind = settled_run(100);
  blind.tree().smallest_detectable_per_step = 3 * kMiB;

  const RunDiff diff = compare(leaking_run(100, 2), blind);

  EXPECT_EQ(row_of(diff, DiffWhat::kGrowthRate).change, Change::kUnclear);
}

TEST(RunDiff, FloorsDifferOnlyBeyondNoise) {
  HandMadeRun noisy = settled_run(1000);
  noisy.tree().evidence.push_back({EvidenceKind::kNoise, 20 * kMiB, std::nullopt});

  EXPECT_EQ(row_of(compare(settled_run(1000), settled_run(1019)), DiffWhat::kSettledFloor).change,
            Change::kSame);
  EXPECT_EQ(row_of(compare(settled_run(1000), settled_run(1021)), DiffWhat::kSettledFloor).change,
            Change::kWorse);
  EXPECT_EQ(row_of(compare(noisy, settled_run(1079)), DiffWhat::kSettledFloor).change,
            Change::kSame);
  EXPECT_EQ(row_of(compare(noisy, settled_run(919)), DiffWhat::kSettledFloor).change,
            Change::kBetter);
}

TEST(RunDiff, NothingIsCalledBetterWhileARunIsUndetermined) {
  HandMadeRun growing = leaking_run(1000, 2);
  growing.tree().verdict = Verdict::kGrowing;
  growing.tree().undetermined = true;
  growing.verdict.verdict = Verdict::kGrowing;
  growing.tree().patterns[0].kind = PatternKind::kGrowth;

  const RunDiff diff = compare(growing, settled_run(1000));

  EXPECT_EQ(diff.verdict, Change::kUnclear);
  EXPECT_FALSE(diff.a.settled);
}

TEST(RunDiff, ComparesPeaksInThePartThatBothRunsHave) {
  HandMadeRun longer = settled_run(1000, 800);
  longer.tracks.tracks[0].of(Metric::kFootprint).add(300.0, 600.0, 9000 * kMiB);

  const RunDiff diff = compare(settled_run(1000, 400), longer);

  ASSERT_TRUE(diff.alignment);
  EXPECT_DOUBLE_EQ(diff.alignment->to, 400);
  EXPECT_DOUBLE_EQ(*row_of(diff, DiffWhat::kPeak).b.value, 1000 * kMiB);
}

TEST(RunDiff, CountsThePeakBeforeTheFirstStep) {
  HandMadeRun run = settled_run(1000);
  run.tracks.tracks[0].of(Metric::kFootprint).add(-1.0, kUnknown, 3000 * kMiB);

  const RunDiff diff = compare(settled_run(1000), run);

  EXPECT_DOUBLE_EQ(*row_of(diff, DiffWhat::kPeak).b.value, 3000 * kMiB);
}

TEST(RunDiff, AlignsAResumedRunOnStepsSinceItsStart) {
  const RunDiff diff = compare(settled_run(1000, 400), settled_run(1200, 300, 10'000));

  ASSERT_TRUE(diff.alignment);
  EXPECT_TRUE(diff.alignment->from_start);
  EXPECT_DOUBLE_EQ(diff.alignment->to, 300);
  ASSERT_EQ(diff.floors.size(), 4U);
  EXPECT_DOUBLE_EQ(diff.floors[3].place, 300);
  EXPECT_DOUBLE_EQ(*diff.floors[3].b_bytes, 1200 * kMiB);
}

TEST(RunDiff, AlignsOnTimeUnlessBothKnowSteps) {
  HandMadeRun timed = settled_run(1000);
  timed.tree().axis = Axis::kTime;

  const RunDiff diff = compare(settled_run(1000), timed);

  ASSERT_TRUE(diff.alignment);
  EXPECT_EQ(diff.alignment->axis, Axis::kTime);
  EXPECT_DOUBLE_EQ(diff.alignment->to, 200);
}

TEST(RunDiff, ReportsSpikesThatCameOrWentOrChanged) {
  HandMadeRun spiky = settled_run(1000);
  add_spikes(spiky, 10, 300, 40);
  HandMadeRun lower = settled_run(1000);
  add_spikes(lower, 5, 100, 80);

  const RunDiff gone = compare(spiky, settled_run(1000));
  const RunDiff came = compare(settled_run(1000), spiky);
  const RunDiff changed = compare(spiky, lower);

  EXPECT_EQ(row_of(gone, DiffWhat::kSpikeHeight).change, Change::kBetter);
  EXPECT_EQ(row_of(came, DiffWhat::kSpikeHeight).change, Change::kWorse);
  EXPECT_EQ(row_of(changed, DiffWhat::kSpikeHeight).change, Change::kBetter);
  EXPECT_EQ(row_of(changed, DiffWhat::kSpikeEvery).change, Change::kBetter)
      << "longer pauses are better";
  EXPECT_EQ(compare(settled_run(1), settled_run(1)).find(DiffWhat::kSpikeHeight), nullptr);
}

TEST(RunDiff, ComparesRolesThatOnlyOneRunHasWithNothing) {
  HandMadeRun with_pool = settled_run(1000);
  add_role(with_pool, Role::kCompileWorker, 20, 300);

  const RunDiff diff = compare(with_pool, settled_run(1000));

  const DiffRow& role = row_of(diff, DiffWhat::kRole);
  EXPECT_EQ(role.role, Role::kCompileWorker);
  EXPECT_EQ(role.processes[0], 20U);
  EXPECT_EQ(role.processes[1], 0U);
  EXPECT_DOUBLE_EQ(*role.b.value, 0.0);
  EXPECT_EQ(role.change, Change::kBetter);
}

TEST(RunDiff, TakesTheOnlyProcessForItsRoleAndTheMedianOfWhatWasNotJudged) {
  HandMadeRun run = settled_run(1000);
  add_role(run, Role::kTrainer, 1, 700);
  add_role(run, Role::kCompileWorker, 20, 300);
  run.verdict.tracks.pop_back();
  run.verdict.tracks.pop_back();
  Track process;
  process.kind = TrackKind::kProcess;
  process.role = Role::kTrainer;
  run.tracks.tracks.push_back(process);
  SeriesVerdict reading;
  reading.last_floor_bytes = 701 * kMiB;
  run.verdict.tracks.push_back({run.tracks.tracks.size() - 1, Metric::kFootprint, reading});

  const RunDiff diff = compare(run, run);

  EXPECT_EQ(diff.rows.rbegin()[1].a.value, 701 * kMiB);
  EXPECT_EQ(diff.rows.rbegin()[0].a.value, 300 * kMiB);
}

TEST(RunDiff, BetterAndWorseTogetherAreMixed) {
  HandMadeRun a = settled_run(1000);
  add_spikes(a, 10, 300, 40);

  EXPECT_EQ(compare(a, settled_run(1200)).overall, Change::kMixed);
}

TEST(RunDiff, HasNoAnswerWithoutAReadingOfTheTree) {
  const HandMadeRun a = settled_run(1000);

  EXPECT_FALSE(compare_runs(a.judged(), a.judged(), Metric::kRss));
}

TEST(RunDiff, OnePlaceInCommonIsNoCourseOfTheFloor) {
  const HandMadeRun one_sample = settled_run(1000, 1);
  HandMadeRun shorter = one_sample;
  Series& curve = shorter.tracks.tracks[0].of(Metric::kFootprint);
  curve = Series();
  curve.add(0, 0, 1000 * kMiB);

  EXPECT_FALSE(compare(one_sample, one_sample).floors.empty());
  EXPECT_TRUE(compare(shorter, one_sample).floors.empty());
}

TEST(CommonMetric, IsTheBestThatBothTreesHave) {
  HandMadeRun both = settled_run(1000);
  both.tracks.tracks[0].of(Metric::kRss).add(0, 0, kMiB);
  HandMadeRun rss_only;
  rss_only.tracks.tracks.emplace_back().of(Metric::kRss).add(0, 0, kMiB);

  EXPECT_EQ(common_metric(both.tracks, both.tracks), Metric::kFootprint);
  EXPECT_EQ(common_metric(both.tracks, rss_only.tracks), Metric::kRss);
  EXPECT_EQ(common_metric(settled_run(1).tracks, rss_only.tracks), std::nullopt);
}

}  // namespace
}  // namespace tidemark::tracker
