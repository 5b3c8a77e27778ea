// SPDX-License-Identifier: Apache-2.0
// The two small policies of the sampler: when to look for processes, when to read shares.
#include <gtest/gtest.h>

#include "monitor/discovery_plan.h"
#include "monitor/pss_budget.h"

namespace tidemark::monitor {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(DiscoveryPlan, StartsWithTheWholeTable) {
  DiscoveryPlan plan;
  EXPECT_EQ(plan.next(kNsPerSecond, 100), Look::kTable);
}

TEST(DiscoveryPlan, DoesNothingWhileNoPidIsHandedOut) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, kMs);

  EXPECT_EQ(plan.next(100 * kNsPerSecond, 100), Look::kNothing);
}

TEST(DiscoveryPlan, AsksForChildrenBetweenTables) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, kMs);

  EXPECT_EQ(plan.next(kNsPerSecond + 500 * kMs, 101), Look::kChildren);
  plan.children_read(kNsPerSecond + 500 * kMs, kMs);
  EXPECT_EQ(plan.next(kNsPerSecond + 700 * kMs, 101), Look::kNothing);
  EXPECT_EQ(plan.next(3 * kNsPerSecond, 101), Look::kTable)
      << "what was born since the last table may have been orphaned";
}

TEST(DiscoveryPlan, AnExpensiveTableIsReadLessOften) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, 100 * kMs);

  EXPECT_EQ(plan.next(10 * kNsPerSecond, 101), Look::kChildren);
  EXPECT_EQ(plan.next(11 * kNsPerSecond, 102), Look::kTable) << "100 times its cost later";
}

TEST(DiscoveryPlan, AskingManyThreadsForChildrenIsDoneLessOften) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, 100 * kMs);
  ASSERT_EQ(plan.next(kNsPerSecond + 100 * kMs, 101), Look::kChildren);
  plan.children_read(kNsPerSecond + 100 * kMs, 15 * kMs);

  EXPECT_EQ(plan.next(2 * kNsPerSecond, 102), Look::kNothing) << "1.5 s have to pass";
  EXPECT_EQ(plan.next(2700 * kMs, 102), Look::kChildren) << "and what came meanwhile is not lost";
}

TEST(DiscoveryPlan, WithoutTheLastPidThereMayAlwaysBeSomethingNew) {
  DiscoveryPlan plan;
  plan.next(kNsPerSecond, std::nullopt);
  plan.table_read(kNsPerSecond, kMs);

  EXPECT_EQ(plan.next(kNsPerSecond + kMs, std::nullopt), Look::kChildren);
}

TEST(DiscoveryPlan, WithoutChildListsOnlyTablesRemain) {
  DiscoveryPlan plan;
  plan.children_unsupported();
  plan.next(kNsPerSecond, 100);
  plan.table_read(kNsPerSecond, kMs);

  EXPECT_EQ(plan.next(kNsPerSecond + kMs, 101), Look::kNothing);
  EXPECT_EQ(plan.next(3 * kNsPerSecond, 101), Look::kTable);
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
