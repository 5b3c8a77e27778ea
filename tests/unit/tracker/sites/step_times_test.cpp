// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/step_times.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/site_run.h"
#include "tests/unit/tracker/traced_run.h"
#include "tracker/sites/site_ranking.h"

namespace tidemark::tracker {
namespace {

TEST(StepTimes, LieBetweenTwoMarkersInProportionToTheTime) {
  StepTimes steps;
  steps.mark(10.0, 100);
  steps.mark(20.0, 110);
  steps.mark(40.0, 120);

  EXPECT_TRUE(std::isnan(steps.at(9.9)));
  EXPECT_EQ(steps.at(10.0), 100.0);
  EXPECT_EQ(steps.at(15.0), 105.0);
  EXPECT_EQ(steps.at(30.0), 115.0);
  EXPECT_EQ(steps.at(40.0), 120.0);
  EXPECT_EQ(steps.at(41.0), 120.0);  // still in the step
  EXPECT_TRUE(std::isnan(steps.at(60.0)));
}

TEST(StepTimes, CountOnWhereNumbersStartAnew) {
  StepTimes steps;
  for (int i = 0; i < 20; ++i) {
    steps.mark(i, i % 10);
  }

  EXPECT_EQ(steps.at(9.0), 9.0);
  EXPECT_EQ(steps.at(10.0), 10.0);
  EXPECT_EQ(steps.at(18.5), 18.5);
}

TEST(StepTimes, StayRightWhenThereAreManyMarkers) {
  StepTimes steps;
  for (int i = 0; i <= 100'000; ++i) {
    steps.mark(i, i * 2);
  }

  for (const double t_s : {0.0, 1.5, 777.25, 50'000.0, 99'999.5, 100'000.0}) {
    EXPECT_NEAR(steps.at(t_s), 2.0 * t_s, 1e-6);
  }
}

// A log that prints every tenth step: the samples between two lines have steps all the same.
TEST(SiteRanking, KnowsStepsBetweenTheLinesOfALog) {
  tests::SiteRun run = one_process();
  run.add_site(tests::trainer_record().key, {run.add_frame("leak")},
               tests::rising(tests::kSiteMiB));
  std::vector<Tick> ticks = run.ticks(200);
  for (Tick& tick : ticks) {
    const auto second = static_cast<std::int64_t>(tick.t_s);
    if (second % 10 == 0) {
      tick.step = second;
      tick.markers.push_back({tick.t_s, {}, MarkerKind::kStep, second, ""});
    }
  }
  Options options;
  options.warmup.steps = 50.0;

  const SiteRanking ranking = rank_sites(built(ticks), options);

  EXPECT_EQ(ranking.lines.at(0).verdict, Verdict::kLeak);
  EXPECT_FALSE(ranking.lines[0].warmup_ignored);
  ASSERT_TRUE(ranking.lines[0].growth_bytes_per_step);
  EXPECT_NEAR(*ranking.lines[0].growth_bytes_per_step, tests::kSiteMiB, 0.05 * tests::kSiteMiB);
}

}  // namespace
}  // namespace tidemark::tracker
