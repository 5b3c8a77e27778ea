// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/scoring.h"

#include <gmock/gmock.h>

#include "tests/bench/accuracy/comparison.h"

namespace tidemark::bench {
namespace {

using tracker::Verdict;

Outcome outcome(bool leaks, Verdict verdict) {
  Outcome outcome;
  outcome.leaks = leaks;
  outcome.due = leaks;
  outcome.verdict = verdict;
  return outcome;
}

TEST(Outcome, OnlyLeakIsAnAlarm) {
  EXPECT_TRUE(outcome(false, Verdict::kLeak).false_alarm());
  EXPECT_FALSE(outcome(false, Verdict::kGrowing).false_alarm());
  EXPECT_FALSE(outcome(true, Verdict::kLeak).false_alarm());
}

TEST(Outcome, GrowingIsNoMiss) {
  EXPECT_TRUE(outcome(true, Verdict::kStable).missed());
  EXPECT_TRUE(outcome(true, Verdict::kSpikes).missed());
  EXPECT_FALSE(outcome(true, Verdict::kGrowing).missed());
  EXPECT_FALSE(outcome(true, Verdict::kLeak).missed());
  Outcome small = outcome(true, Verdict::kStable);
  small.due = false;
  EXPECT_FALSE(small.missed());
}

TEST(Outcome, APrintedSizeIsAPromise) {
  Outcome hidden = outcome(true, Verdict::kStable);
  hidden.rate = 2.0;
  hidden.whole_window = true;
  EXPECT_FALSE(hidden.broke_its_word());  // nothing was printed
  hidden.printed = 1.5;
  EXPECT_TRUE(hidden.broke_its_word());
  hidden.printed = 2.5;
  EXPECT_FALSE(hidden.broke_its_word());
  hidden.printed = 1.5;
  hidden.whole_window = false;
  EXPECT_FALSE(hidden.broke_its_word());
}

TEST(JudgeGenerated, KeepsTheTruthBesideTheVerdict) {
  for (std::uint64_t index = 0; index < kFamilyCount; ++index) {
    const Curve curve = generate(1, index);
    const Outcome judged = judge_generated(curve, index);
    EXPECT_EQ(judged.family, family_at(index));
    EXPECT_EQ(judged.points, curve.points.size());
    EXPECT_EQ(judged.right, curve.truth.right.has(judged.verdict));
    EXPECT_EQ(judged.allowed_print, std::max(curve.truth.bound.rate, curve.truth.gate));
  }
}

TEST(Bars, OneMissIsEnough) {
  Bars bars;
  bars.at_most("a", 0.5, 0.5, "");
  bars.at_least("b", 95.0, 95.0, "");
  EXPECT_TRUE(bars.all_met());
  bars.at_most("c", 0.6, 0.5, "");
  EXPECT_FALSE(bars.all_met());
}

TEST(LeakTally, CountsUndecidedLeaksApart) {
  LeakTally tally;
  tally.add(true, Verdict::kLeak);
  tally.add(true, Verdict::kGrowing);
  tally.add(true, Verdict::kWarmup);
  tally.add(false, Verdict::kGrowing);
  tally.add(false, Verdict::kLeak);
  EXPECT_EQ(tally.found, 1U);
  EXPECT_EQ(tally.undecided, 1U);
  EXPECT_EQ(tally.missed, 1U);
  EXPECT_EQ(tally.quiet, 1U);
  EXPECT_EQ(tally.false_alarms, 1U);
}

}  // namespace
}  // namespace tidemark::bench
