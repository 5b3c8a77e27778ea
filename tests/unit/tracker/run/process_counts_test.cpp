// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/process_churn.h"

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

TEST(ProcessCounts, JoinsProcessesThatComeTogether) {
  const RunTracks run = SyntheticRun(100, 1.0)
                            .add(trainer(flat(500 * kMB)))
                            .add(loader(10))
                            .add(loader(11))
                            .add(loader(12, 60))
                            .play();

  const std::vector<ProcessCountChange> changes = count_processes(run).of(Role::kDataloaderWorker);

  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].before, 0);
  EXPECT_EQ(changes[0].after, 3);
  EXPECT_EQ(changes[1].t_s, 60.0);
  EXPECT_EQ(changes[1].after, 2);
}

TEST(ProcessCounts, WaitsUntilANewProcessHasTheMemoryThatItStartsWith) {
  Actor slow = loader(10);
  slow.own = ramp(0, 300 * kMB, 10, 30);
  const RunTracks run =
      SyntheticRun(100, 1.0).noise(0).add(trainer(flat(500 * kMB))).add(slow).play();

  const std::vector<ProcessCountChange> changes = count_processes(run).of(Role::kDataloaderWorker);

  ASSERT_EQ(changes.size(), 1U);
  EXPECT_NEAR(changes[0].settled_s, 30.0, 1.0);
}

TEST(ProcessCounts, CountsEventsWhereCurvesWereTooManyToKeep) {
  RunTracks run = SyntheticRun(100, 1.0).add(trainer(flat(500 * kMB))).play();
  for (const double t_s : {10.0, 20.0, 30.0}) {
    run.events.push_back({t_s, RunEvent::Kind::kSpawn, Role::kCompileWorker, ""});
  }
  run.events.push_back({40.0, RunEvent::Kind::kExit, Role::kCompileWorker, ""});

  const std::vector<ProcessCountChange> changes = count_processes(run).of(Role::kCompileWorker);

  ASSERT_EQ(changes.size(), 4U);
  EXPECT_EQ(changes[2].after, 3);
  EXPECT_EQ(changes[3].after, 2);
}

TEST(ProcessCounts, KnowsGrowthThatGoesOnFromGrowthThatEnded) {
  SyntheticRun endless(1000, 1.0);
  SyntheticRun ended(1000, 1.0);
  SyntheticRun renewed(1000, 1.0);
  SyntheticRun ever_larger_pools(1000, 1.0);
  for (int i = 0; i < 9; ++i) {
    endless.add(loader(50 + i * 100));
    ended.add(loader(50 + i * 20));
    renewed.add(loader(50 + i * 100, 150 + i * 100));
    ever_larger_pools.add(2 + i, loader(50 + i * 100, i < 8 ? 120 + i * 100 : 2000));
  }
  const auto grows = [](const SyntheticRun& script) {
    const RunTracks run = SyntheticRun(script).add(trainer(flat(500 * kMB))).play();
    return keeps_growing(count_processes(run).of(Role::kDataloaderWorker), {0.0, 1000.0});
  };

  EXPECT_TRUE(grows(endless));
  EXPECT_FALSE(grows(ended));
  EXPECT_FALSE(grows(renewed));
  EXPECT_FALSE(grows(ever_larger_pools));
}

}  // namespace
}  // namespace tidemark::tracker
