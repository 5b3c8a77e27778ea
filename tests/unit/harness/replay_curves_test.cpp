// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/replay_curves.h"

#include <gtest/gtest.h>

namespace tidemark::harness {
namespace {

TEST(ReplayedJob, GoesThroughTheLoggedPoints) {
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob1, 10, 1), 5376);
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob1, 80, 1), 17406);
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob1, 100, 1), 17882);
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob2, 50, 1), 12786);
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob2, 180, 1), 18614);
}

TEST(ReplayedJob, IsStraightBetweenThem) {
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob1, 15, 1), (5376.0 + 6984.0) / 2);
}

TEST(ReplayedJob, StandsStillBeforeAndAfterTheLog) {
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob1, 0, 1), 5376);
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob1, 240, 1), 17882);
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kJob1, 100'000, 1), 17882);
}

TEST(ReplayedJob, HasGrownAtThePlateauThatItsFactsTell) {
  for (const Replay job : {Replay::kJob1, Replay::kJob2}) {
    const ReplayFacts facts = facts_of(job);
    const double end_mb = replayed_mb(job, facts.steps, 1);
    const double growth_mb = end_mb - replayed_mb(job, 0, 1);

    EXPECT_GT(growth_mb, 10'000);
    EXPECT_NEAR(replayed_mb(job, *facts.plateau_step, 1), end_mb, 0.004 * growth_mb);
  }
}

TEST(ReplayedValidation, ComesBackToItsFloorAfterEachSpike) {
  const ReplayFacts facts = facts_of(Replay::kValspike);
  for (std::uint64_t period = 1; period < 6; ++period) {
    const std::uint64_t end = period * *facts.spike_period_steps;

    EXPECT_DOUBLE_EQ(replayed_mb(Replay::kValspike, end, 1), 4800);
    EXPECT_DOUBLE_EQ(replayed_mb(Replay::kValspike, end - 1, 1), 4800 + facts.spike_mb);
  }
}

TEST(ReplayedSlowLeak, RaisesItsFloorByAThousandInTheLoggedRun) {
  const ReplayFacts facts = facts_of(Replay::kSlowleak);

  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kSlowleak, 0, 1), 6000);
  EXPECT_DOUBLE_EQ(replayed_mb(Replay::kSlowleak, facts.steps, 1), 7000);
  EXPECT_DOUBLE_EQ(facts.leak_mb_per_step * static_cast<double>(facts.steps), 1000);
}

TEST(ReplayedCatastrophe, NeverShrinksAndStaysNearItsLine) {
  const ReplayFacts facts = facts_of(Replay::kCatastrophic);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    double before = 0;
    for (std::uint64_t step = 0; step <= 1000; ++step) {
      const double mb = replayed_mb(Replay::kCatastrophic, step, seed);

      ASSERT_GE(mb, before);
      ASSERT_NEAR(mb, 1254 + facts.leak_mb_per_step * static_cast<double>(step), 350);
      before = mb;
    }
  }
}

TEST(ReplayedCatastrophe, IsTheSameForTheSameSeedOnly) {
  EXPECT_EQ(replayed_mb(Replay::kCatastrophic, 55, 7), replayed_mb(Replay::kCatastrophic, 55, 7));
  EXPECT_NE(replayed_mb(Replay::kCatastrophic, 54, 7), replayed_mb(Replay::kCatastrophic, 54, 8));
}

}  // namespace
}  // namespace tidemark::harness
