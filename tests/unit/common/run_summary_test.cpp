// SPDX-License-Identifier: Apache-2.0
#include "common/run_summary.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

Tick tick(double t_s, std::uint64_t footprint, std::optional<std::int64_t> step = {}) {
  Tick result;
  result.t_s = t_s;
  result.step = step;
  result.tree.processes = 1;
  result.tree.footprint_bytes = footprint;
  result.tree.rss_bytes = footprint + 50;
  GroupSample trainer = result.tree;
  result.roles.push_back({Role::kTrainer, trainer});
  return result;
}

TEST(RunSummary, KeepsStartEndAndPeak) {
  RunSummary summary;
  summary.add(tick(0, 100));
  summary.add(tick(30, 900));
  summary.add(tick(60, 400));

  EXPECT_EQ(summary.footprint().first_bytes, 100U);
  EXPECT_EQ(summary.footprint().last_bytes, 400U);
  EXPECT_EQ(summary.footprint().peak_bytes, 900U);
  EXPECT_DOUBLE_EQ(summary.footprint().peak_s, 30.0);
  EXPECT_EQ(summary.footprint().growth_bytes(), 300);
  EXPECT_DOUBLE_EQ(*summary.footprint().growth_bytes_per_s(), 5.0);
  EXPECT_EQ(summary.rss().last_bytes, 450U);
}

TEST(RunSummary, GivesGrowthPerStepBetweenTheFirstAndTheLastStep) {
  RunSummary summary;
  summary.add(tick(0, 100));
  summary.add(tick(1, 500, 10));
  summary.add(tick(2, 600, 12));
  summary.add(tick(3, 800, 14));
  summary.add(tick(4, 900, 14));

  EXPECT_DOUBLE_EQ(*summary.footprint().growth_bytes_per_step(), 75.0)
      << "loading before step 10 and idling after step 14 do not count";
}

TEST(RunSummary, CountsStepsThroughTheRestartOfTheirNumbers) {
  RunSummary summary;
  double t_s = 0;
  std::uint64_t bytes = 1000;
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (std::int64_t step = 1; step <= 6; ++step) {
      summary.add(tick(t_s, bytes, step));
      t_s += 1.0;
      bytes += 10;
    }
  }

  EXPECT_DOUBLE_EQ(*summary.footprint().growth_bytes_per_step(), 10.0);
}

TEST(RunSummary, ARoleThatHasEndedIsGoneAndHasNoGrowth) {
  RunSummary summary;
  Tick with_worker = tick(0, 100);
  with_worker.roles.push_back({Role::kDataloaderWorker, with_worker.tree});
  summary.add(with_worker);
  summary.add(tick(1, 100));

  EXPECT_TRUE(summary.roles()[static_cast<std::size_t>(Role::kDataloaderWorker)].memory.ended);
  EXPECT_FALSE(summary.roles()[static_cast<std::size_t>(Role::kTrainer)].memory.ended);
}

TEST(RunSummary, HasNoRateOfOneSample) {
  RunSummary summary;
  summary.add(tick(0, 100, 1));

  EXPECT_EQ(summary.footprint().growth_bytes_per_s(), std::nullopt);
  EXPECT_EQ(summary.footprint().growth_bytes_per_step(), std::nullopt);
}

TEST(RunSummary, AnEmptyTreeAtTheEndIsNoFall) {
  RunSummary summary;
  summary.add(tick(0, 100));
  Tick last;
  last.t_s = 1;
  summary.add(last);

  EXPECT_EQ(summary.footprint().last_bytes, 100U);
  EXPECT_EQ(summary.ticks(), 2U);
}

TEST(RunSummary, AddsUpLossesAndEvents) {
  RunSummary summary;
  for (int i = 0; i < 3; ++i) {
    Tick one = tick(i, 100);
    one.losses.push_back({one.t_s, LossKind::kPssDenied, 2});
    one.events.push_back({one.t_s, EventKind::kSpawn, {}, ""});
    one.events.push_back({one.t_s, EventKind::kOomKill, {}, ""});
    summary.add(one);
  }

  ASSERT_EQ(summary.losses().size(), 1U);
  EXPECT_EQ(summary.losses()[0].count, 6U);
  EXPECT_EQ(summary.starts(), 2U) << "who was there at first did not start";
  EXPECT_EQ(summary.oom_kills(), 3U);
}

}  // namespace
}  // namespace tidemark
