// SPDX-License-Identifier: Apache-2.0
// The small policies of the sampler: when to look for processes, whose status and whose share to
// read.
#include <gtest/gtest.h>

#include <vector>

#include "monitor/sampler_plans.h"

namespace tidemark::monitor {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(DiscoveryPlan, StartsWithTheWholeTable) {
  DiscoveryPlan plan;
  EXPECT_EQ(plan.next(kNsPerSecond, 100), Discovery::kTable);
}

TEST(DiscoveryPlan, DoesNothingWhileNoPidIsHandedOut) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, kMs);

  EXPECT_EQ(plan.next(100 * kNsPerSecond, 100), Discovery::kNothing);
}

TEST(DiscoveryPlan, AsksForChildrenBetweenTables) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, kMs);

  EXPECT_EQ(plan.next(kNsPerSecond + 500 * kMs, 101), Discovery::kChildren);
  plan.children_read(kNsPerSecond + 500 * kMs, kMs);
  EXPECT_EQ(plan.next(kNsPerSecond + 700 * kMs, 101), Discovery::kNothing);
  EXPECT_EQ(plan.next(3 * kNsPerSecond, 101), Discovery::kTable)
      << "what was born since the last table may have been orphaned";
}

TEST(DiscoveryPlan, AnExpensiveTableIsReadLessOften) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, 100 * kMs);

  EXPECT_EQ(plan.next(10 * kNsPerSecond, 101), Discovery::kChildren);
  EXPECT_EQ(plan.next(11 * kNsPerSecond, 102), Discovery::kTable) << "100 times its cost later";
}

TEST(DiscoveryPlan, AskingManyThreadsForChildrenIsDoneLessOften) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, 100 * kMs);
  ASSERT_EQ(plan.next(kNsPerSecond + 100 * kMs, 101), Discovery::kChildren);
  plan.children_read(kNsPerSecond + 100 * kMs, 15 * kMs / 2);

  EXPECT_EQ(plan.next(2 * kNsPerSecond, 102), Discovery::kNothing) << "1.5 s have to pass";
  EXPECT_EQ(plan.next(2700 * kMs, 102), Discovery::kChildren)
      << "and what came meanwhile is not lost";
}

TEST(DiscoveryPlan, WithoutTheLastPidThereMayAlwaysBeSomethingNew) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, std::nullopt);
  plan.table_read(kNsPerSecond, kMs);

  EXPECT_EQ(plan.next(kNsPerSecond + kMs, std::nullopt), Discovery::kChildren);
}

TEST(DiscoveryPlan, WithoutChildListsOnlyTablesRemain) {
  DiscoveryPlan plan;
  plan.children_unsupported();
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, kMs);

  EXPECT_EQ(plan.next(kNsPerSecond + kMs, 101), Discovery::kNothing);
  EXPECT_EQ(plan.next(3 * kNsPerSecond, 101), Discovery::kTable);
}

TEST(StatusPlan, ReadsEverybodyOfASmallTree) {
  StatusPlan plan(4);
  plan.begin_tick(4);

  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(plan.of(i), StatusRead::kAlways);
  }
  EXPECT_EQ(plan.again(), StatusRead::kAlways);
}

// How often each of `count` processes has a turn within `ticks`.
std::vector<int> turns(StatusPlan& plan, std::size_t count, int ticks) {
  std::vector<int> turns(count);
  for (int tick = 0; tick < ticks; ++tick) {
    plan.begin_tick(count);
    for (std::size_t i = 0; i < count; ++i) {
      turns[i] += plan.of(i) == StatusRead::kInTurn ? 1 : 0;
    }
  }
  return turns;
}

TEST(StatusPlan, EverybodyOfALargeTreeHasATurnInEachRound) {
  StatusPlan plan(4);

  EXPECT_EQ(turns(plan, 40, 10), std::vector<int>(40, 1));
  EXPECT_EQ(plan.again(), StatusRead::kIfChanged);
}

TEST(StatusPlan, ARoundThatDoesNotFitBeginsTheNext) {
  StatusPlan plan(4);

  EXPECT_EQ(turns(plan, 6, 2), (std::vector{2, 2, 1, 1, 1, 1}));
}

TEST(StatusPlan, WhoMovesUpDoesNotMissItsTurn) {
  StatusPlan plan(4);
  plan.begin_tick(12);  // 0 to 3
  plan.removed(1);
  plan.removed(9);

  plan.begin_tick(10);

  EXPECT_EQ(plan.of(2), StatusRead::kIfChanged);
  EXPECT_EQ(plan.of(3), StatusRead::kInTurn) << "was the fifth";
}

TEST(StatusPlan, GoesOnInATreeThatHasShrunk) {
  StatusPlan plan(4);
  plan.begin_tick(12);
  plan.begin_tick(12);

  EXPECT_EQ(turns(plan, 5, 2), (std::vector{2, 2, 2, 1, 1}));
  plan.begin_tick(3);
  EXPECT_EQ(plan.of(2), StatusRead::kAlways);
}

TEST(PssBudget, OffNeverAndAlwaysAlways) {
  PssBudget off(PssMode::kOff, 0.01);
  PssBudget always(PssMode::kAlways, 0.01);
  always.charge(kNsPerSecond);

  EXPECT_FALSE(off.may_read(kNsPerSecond));
  EXPECT_TRUE(always.may_read(kNsPerSecond));
}

TEST(PssBudget, TheFirstPassIsFreeUpToACap) {
  PssBudget budget(PssMode::kAuto, 0.01);
  ASSERT_TRUE(budget.may_read(kNsPerSecond));
  budget.charge(200 * kMs);
  ASSERT_TRUE(budget.may_read(kNsPerSecond)) << "still the first pass";
  budget.charge(60 * kMs);
  ASSERT_FALSE(budget.may_read(kNsPerSecond)) << "it has lasted long enough";

  EXPECT_FALSE(budget.may_read(2 * kNsPerSecond));
  EXPECT_TRUE(budget.may_read(12 * kNsPerSecond)) << "0.1 s of debt at 1 % is paid in 10 s";
}

TEST(PssBudget, SpendsOnePercentOfTheTimeInTheLongRun) {
  PssBudget budget(PssMode::kAuto, 0.01);
  budget.first_pass_done();
  std::int64_t spent = 0;
  for (std::int64_t now = kNsPerSecond; now < 1001 * kNsPerSecond; now += 100 * kMs) {
    while (budget.may_read(now)) {
      budget.charge(20 * kMs);
      spent += 20 * kMs;
    }
  }

  EXPECT_NEAR(to_seconds(spent), 10.0, 0.2);
}

TEST(PssBudget, RefusesProcessesThatWouldBeStalledForASecond) {
  const PssBudget budget(PssMode::kAuto, 0.01);
  const PssBudget always(PssMode::kAlways, 0.01);

  EXPECT_TRUE(budget.too_large(std::uint64_t{200} << 30U));
  EXPECT_FALSE(budget.too_large(std::uint64_t{20} << 30U));
  EXPECT_FALSE(always.too_large(std::uint64_t{200} << 30U));
}

}  // namespace
}  // namespace tidemark::monitor
