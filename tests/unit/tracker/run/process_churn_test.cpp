// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/process_churn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/tracker/synthetic_run.h"

namespace tidemark::tracker {
namespace {

using tests::Actor;
using tests::flat;
using tests::kMB;
using tests::loader;
using tests::ramp;
using tests::SyntheticRun;
using tests::trainer;

std::pair<double, double> range_of(const Series& series) {
  double low = series.cells().front().min_bytes;
  double high = low;
  for (const Cell& cell : series.cells()) {
    low = std::min(low, cell.min_bytes);
    high = std::max(high, cell.max_bytes);
  }
  return {low, high};
}

Series calm_tree(const RunTracks& run) {
  std::optional<Series> calm =
      without_process_churn(run, run.tracks[0], run.tracks[0].of(Metric::kFootprint));
  EXPECT_TRUE(calm.has_value());
  return std::move(calm).value_or(Series());
}

TEST(WithoutProcessChurn, LeavesAStraightLineOfAPoolThatQuitsAndReturns) {
  const RunTracks run = SyntheticRun(1000, 1.0)
                            .noise(0)
                            .add(trainer(flat(500 * kMB)))
                            .add(4, loader(0, 59))
                            .add(4, loader(300, 400))
                            .add(4, loader(800))
                            .play();

  const Series calm = calm_tree(run);

  EXPECT_EQ(range_of(calm), std::pair(900 * kMB, 900 * kMB));
}

TEST(WithoutProcessChurn, KeepsTheGrowthOfThoseThatStay) {
  const RunTracks run = SyntheticRun(1000, 1.0)
                            .noise(0)
                            .add(trainer(ramp(500 * kMB, 1500 * kMB, 0, 1000)))
                            .add(4, loader(0, 59))
                            .add(4, loader(300, 400))
                            .add(loader(600))
                            .play();

  const Series calm = calm_tree(run);

  const auto [low, high] = range_of(calm);
  EXPECT_NEAR(high - low, 1000 * kMB, 30 * kMB);
  EXPECT_NEAR(high, 1600 * kMB, kMB);
}

TEST(WithoutProcessChurn, DoesNotAddUpWhatEachGenerationGrowsBy) {
  SyntheticRun script(1000, 1.0);
  script.noise(0).add(trainer(flat(500 * kMB)));
  for (int i = 0; i < 9; ++i) {
    Actor growing = loader(i * 100.0, i * 100.0 + 90.0);
    growing.own = ramp(100 * kMB, 200 * kMB, growing.started_s, growing.exited_s);
    script.add(growing);
  }
  const RunTracks run = script.play();

  const Series calm = calm_tree(run);

  const auto [low, high] = range_of(calm);
  EXPECT_LE(high - low, 210 * kMB);
  EXPECT_NEAR(calm.cells()[calm.cells().size() - 100].min_bytes, calm.cells().front().min_bytes,
              105 * kMB);
}

TEST(WithoutProcessChurn, SeesWhatEachGenerationGivesBackWhenTheNextReplacesItAtOnce) {
  SyntheticRun script(1000, 1.0);
  script.noise(0).add(trainer(flat(500 * kMB)));
  for (int i = 0; i < 9; ++i) {
    Actor growing = loader(50.0 + i * 100.0, 150.0 + i * 100.0);
    growing.own = ramp(100 * kMB, 200 * kMB, growing.started_s, growing.exited_s);
    script.add(growing);
  }

  const auto [low, high] = range_of(calm_tree(script.play()));

  EXPECT_LE(high - low, 110 * kMB);
}

TEST(WithoutProcessChurn, WaitsUntilNewProcessesHaveTheirMemory) {
  Actor slow = loader(100);
  slow.own = ramp(0, 400 * kMB, 100, 140);
  const RunTracks run =
      SyntheticRun(1000, 1.0).noise(0).add(trainer(flat(500 * kMB))).add(slow).play();

  EXPECT_EQ(range_of(calm_tree(run)), std::pair(900 * kMB, 900 * kMB));
}

TEST(WithoutProcessChurn, CountsSharedPagesOfExitedProcessesWithThoseOfTheirGeneration) {
  // 300 MB that four share, then three, and 5 MB of each.
  const auto part = [](double t_s) { return (t_s < 500.0 ? 75 : 100) * kMB + 5 * kMB; };
  Actor stays = loader(100);
  stays.own = flat(305 * kMB);
  stays.once = part;
  Actor goes = stays;
  goes.exited_s = 500.0;
  const RunTracks run =
      SyntheticRun(1000, 1.0).noise(0).add(trainer(flat(500 * kMB))).add(3, stays).add(goes).play();

  const auto [low, high] = range_of(calm_tree(run));

  EXPECT_LE(high - low, kMB);
}

TEST(WithoutProcessChurn, KeepsLowAndHighWaterOfMergedCells) {
  const auto wave = [](double t_s) { return std::fmod(t_s, 2.0) < 1.0 ? 500 * kMB : 900 * kMB; };
  const RunTracks run =
      SyntheticRun(20000, 1.0).noise(0).add(trainer(wave)).add(loader(9000)).play();

  const Series calm = calm_tree(run);

  EXPECT_EQ(range_of(calm), std::pair(600 * kMB, 1000 * kMB));
}

}  // namespace
}  // namespace tidemark::tracker
