// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/grade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/report/sample_verdict.h"

namespace tidemark::demo {
namespace {

using testing::HasSubstr;
using tests::growing_run;
using tests::kMiBf;
using tests::leaking_run;
using tests::stable_run;
using tracker::Verdict;

// The truth of leaking_run(): 2 MiB per step in pid 1240.
DemoTruth true_leak() {
  DemoTruth truth;
  truth.complete = true;
  truth.verdict = Verdict::kLeak;
  truth.leak_bytes_per_step = 2 * kMiBf;
  truth.allocating_line = "trainer_harness/collator.cpp:42";
  truth.where = "process";
  truth.trainer_pid = 1240;
  return truth;
}

TEST(DemoGrade, IsRightWhenVerdictPlaceAndRateAre) {
  const DemoGrade grade = grade_demo("leak", true_leak(), leaking_run());

  EXPECT_TRUE(grade.is_right()) << grade.problem;
  EXPECT_EQ(grade.truth, Verdict::kLeak);
  EXPECT_EQ(grade.verdict, Verdict::kLeak);
  EXPECT_EQ(grade.true_bytes_per_step, 2 * kMiBf);
  EXPECT_EQ(grade.measured_bytes_per_step, 2 * kMiBf);
  EXPECT_EQ(grade.true_line, "trainer_harness/collator.cpp:42");
  EXPECT_EQ(grade.found_line, std::nullopt);
}

TEST(DemoGrade, LetsTheRateBeOffByATenth) {
  DemoTruth truth = true_leak();

  truth.leak_bytes_per_step = 2 * kMiBf / 1.09;
  EXPECT_TRUE(grade_demo("leak", truth, leaking_run()).is_right());

  truth.leak_bytes_per_step = 2 * kMiBf / 1.12;
  EXPECT_EQ(grade_demo("leak", truth, leaking_run()).problem, "the rate is off by +12 %");

  truth.leak_bytes_per_step = 2 * kMiBf / 0.85;
  EXPECT_EQ(grade_demo("leak", truth, leaking_run()).problem, "the rate is off by -15 %");
}

TEST(DemoGrade, IsWrongWhenTheLeakWasSeenInAnotherProcess) {
  DemoTruth truth = true_leak();
  truth.trainer_pid = 1239;

  const DemoGrade grade = grade_demo("wrapper", truth, leaking_run());

  EXPECT_FALSE(grade.is_right());
  EXPECT_THAT(grade.problem, HasSubstr("wrong place: trainer, pid 1240"));
}

TEST(DemoGrade, WantsTheTrueLineWhereSomebodyLooked) {
  EXPECT_TRUE(grade_demo("leak", true_leak(), leaking_run(), "/src/collator.cpp:42").is_right());

  EXPECT_EQ(grade_demo("leak", true_leak(), leaking_run(), "/src/collator.cpp:43").problem,
            "the stack that grows most is another one");
}

TEST(DemoGrade, IsWrongWhenTheTracerFoundNoLineAtAll) {
  EXPECT_EQ(grade_demo("leak", true_leak(), leaking_run(), "").problem,
            "no stack was found that grows");
}

TEST(DemoGrade, GoesByWhoCarriesTheGrowthOfATree) {
  tracker::JudgedRun result = leaking_run();
  result.verdict->carrier = result.verdict->where;
  result.verdict->where = 0;  // the tree
  result.verdict->tracks[0].series.patterns =
      result.verdict->tracks[*result.verdict->carrier].series.patterns;

  EXPECT_TRUE(grade_demo("leak", true_leak(), result).is_right());
}

TEST(DemoGrade, WantsLostSegmentsToBeFoundInSharedMemory) {
  DemoTruth truth = true_leak();
  truth.where = "shm";
  tracker::JudgedRun result = leaking_run();
  EXPECT_FALSE(grade_demo("shm", truth, result).is_right());

  result.run.tracks[2].kind = tracker::TrackKind::kShm;

  EXPECT_TRUE(grade_demo("shm", truth, result).is_right());
  EXPECT_TRUE(grade_demo("shm", truth, result, "").is_right()) << "no stack allocates segments";
}

TEST(DemoGrade, TellsTheAnswerThatWasGivenInsteadOfTheRightOne) {
  const DemoGrade grade = grade_demo("leak", true_leak(), growing_run());

  EXPECT_FALSE(grade.is_right());
  EXPECT_EQ(grade.verdict, Verdict::kGrowing);
  EXPECT_THAT(grade.problem, HasSubstr("LIKELY WARM-UP"));
}

TEST(DemoGrade, AsksNothingButTheVerdictWhereNothingLeaks) {
  DemoTruth truth;
  truth.verdict = Verdict::kStable;
  truth.where = "process";
  truth.trainer_pid = 5;

  EXPECT_TRUE(grade_demo("steady", truth, stable_run()).is_right());
  truth.verdict = Verdict::kSpikes;
  EXPECT_FALSE(grade_demo("steady", truth, stable_run()).is_right());
}

// A run that is judged as a warm-up to step 90 that adds 100 MiB.
tracker::JudgedRun warmed_up_run() {
  tracker::JudgedRun result = stable_run();
  result.verdict->verdict = Verdict::kWarmup;
  tracker::Pattern warmup;
  warmup.to.step = 90;
  warmup.growth_bytes = 100 * kMiBf;
  result.verdict->tracks[result.verdict->where].series.patterns = {warmup};
  return result;
}

TEST(DemoGrade, WantsPlateauAndGrowthOfARecordedJob) {
  DemoTruth truth;
  truth.verdict = Verdict::kWarmup;
  truth.is_replay = true;
  truth.plateau_step = 81;
  truth.warmup_growth_bytes = 97 * kMiBf;
  EXPECT_TRUE(grade_demo("job1", truth, warmed_up_run()).is_right());

  truth.warmup_growth_bytes = 90 * kMiBf;
  EXPECT_EQ(grade_demo("job1", truth, warmed_up_run()).problem,
            "the growth of the warm-up is off by +11 %");

  truth.plateau_step = 79;
  EXPECT_EQ(grade_demo("job1", truth, warmed_up_run()).problem,
            "the warm-up ends at step 90, not 79");

  tracker::JudgedRun without_end = warmed_up_run();
  without_end.verdict->tracks[without_end.verdict->where].series.patterns.clear();
  EXPECT_EQ(grade_demo("job1", truth, without_end).problem, "no end of the warm-up was found");

  truth.is_replay = false;
  EXPECT_TRUE(grade_demo("warmup", truth, warmed_up_run()).is_right());
}

TEST(DemoGrade, OfARunThatFailedIsNeitherRightNorWrong) {
  const DemoGrade grade = failed_demo("leak", "no such device");

  EXPECT_FALSE(grade.has_run());
  EXPECT_FALSE(grade.is_right());
}

TEST(DemoGrade, KnowsThatNothingCouldBeJudged) {
  EXPECT_EQ(grade_demo("leak", true_leak(), {}).problem, "nothing could be judged");
}

}  // namespace
}  // namespace tidemark::demo
