// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/plan.h"
#include "common/units.h"

#include <gtest/gtest.h>

#include <utility>

namespace tidemark::harness {
namespace {

TrainerOptions options_for(Scenario scenario) {
  TrainerOptions options;
  options.scenarios = {scenario};
  options.steps = 200;
  options.mb = 100;
  return options;
}

TEST(Plan, HoldsAllOfASteadyRunFromTheStart) {
  const Plan plan = plan_run(options_for(Scenario::kSteady));

  EXPECT_EQ(plan.base_bytes, 100 * kMiB);
  EXPECT_FALSE(plan.leak);
  EXPECT_EQ(plan.eval_every, 0U);
}

TEST(Plan, FillsTheCacheDuringTheFirstEpoch) {
  const Plan plan = plan_run(options_for(Scenario::kWarmup));

  EXPECT_EQ(plan.epoch_steps, 40U);
  EXPECT_NEAR(static_cast<double>(plan.cache_bytes()), 100.0 * kMiB, 0.001 * 100 * kMiB);
}

TEST(Plan, LoadsEverythingForEachEvaluation) {
  const Plan plan = plan_run(options_for(Scenario::kSpikes));

  EXPECT_EQ(plan.eval_every, 25U);
  EXPECT_EQ(plan.eval_batches, 5U);
  EXPECT_EQ(plan.eval_bytes, 100 * kMiB);
}

TEST(Plan, EvaluatesWithoutASpikeWhenOnlyAskedToEvaluate) {
  TrainerOptions options = options_for(Scenario::kSteady);
  options.eval_every = 10;

  const Plan plan = plan_run(options);

  EXPECT_EQ(plan.eval_every, 10U);
  EXPECT_EQ(plan.eval_bytes, 0U);
}

TEST(Plan, SpreadsALeakOverTheStepsThatLeak) {
  const Plan plan = plan_run(options_for(Scenario::kLeak));

  EXPECT_EQ(plan.leak->after_step, 20U);
  EXPECT_NEAR(static_cast<double>(plan.leak->bytes_per_step * 180), 100.0 * kMiB, 180);
}

TEST(Plan, LeavesALeakTheStepsThatTheDefaultAllowanceAsksFor) {
  TrainerOptions options = options_for(Scenario::kLeak);
  for (const auto& [steps, calm] : {std::pair(300U, 30U), {400U, 100U}, {1000U, 250U}}) {
    options.steps = steps;
    EXPECT_EQ(plan_run(options).leak->after_step, calm) << steps;
  }
}

TEST(Plan, TakesTheLeakAsItIsTold) {
  TrainerOptions options = options_for(Scenario::kLeak);
  options.mb_per_step = 0.25;
  options.from_step = 7;

  const Plan plan = plan_run(options);

  EXPECT_EQ(plan.leak->after_step, 7U);
  EXPECT_EQ(plan.leak->bytes_per_step, kMiB / 4);
}

TEST(Plan, KeepsOneCopyPerCheckpoint) {
  const Plan plan = plan_run(options_for(Scenario::kStaircase));

  EXPECT_EQ(plan.checkpoint_every, 20U);
  EXPECT_EQ(plan.checkpoint_bytes, 10 * kMiB);
}

TEST(Plan, WritesCheckpointsWithoutKeepingCopies) {
  TrainerOptions options = options_for(Scenario::kSteady);
  options.checkpoint_path = "model.pt";

  const Plan plan = plan_run(options);

  EXPECT_EQ(plan.checkpoint_every, 20U);
  EXPECT_EQ(plan.checkpoint_bytes, 0U);
}

TEST(Plan, PilesUpCyclesUntilTheyAreCollected) {
  const Plan plan = plan_run(options_for(Scenario::kSawtooth));

  EXPECT_EQ(plan.collect_every, 10U);
  EXPECT_EQ(plan.cycle_bytes_per_step, 10 * kMiB);
}

TEST(Plan, HalvesAWorkerIntoSharedAndPrivate) {
  TrainerOptions options = options_for(Scenario::kCompileWorkers);
  options.workers = 6;
  options.worker_mb = 40;
  options.quiesce = true;

  const Plan plan = plan_run(options);

  EXPECT_EQ(plan.pool->workers, 6U);
  EXPECT_EQ(plan.pool->shared_bytes, 20 * kMiB);
  EXPECT_EQ(plan.pool->private_bytes, 20 * kMiB);
  EXPECT_EQ(plan.pool->quits_after_step, 100U);
}

TEST(Plan, CopiesTheSharedHeapByAndBy) {
  const Plan plan = plan_run(options_for(Scenario::kDataloaderCow));

  EXPECT_EQ(plan.copy_on_write->until_step, 80U);
  EXPECT_DOUBLE_EQ(copied_share(*plan.copy_on_write, 0), 0);
  EXPECT_DOUBLE_EQ(copied_share(*plan.copy_on_write, 40), 0.5);
  EXPECT_DOUBLE_EQ(copied_share(*plan.copy_on_write, 200), 1);
}

TEST(Plan, ReplaysAJobToScaleAndForAsLongAsItRan) {
  TrainerOptions options;
  options.scenarios = {Scenario::kReplay};
  options.replay = Replay::kJob2;
  options.scale = 0.05;

  const Plan plan = plan_run(options);

  EXPECT_EQ(plan.steps, 180U);
  EXPECT_NEAR(static_cast<double>(replayed_bytes(*plan.replayed, 180)), 0.05 * 18614 * kMiB, 1);
}

TEST(Plan, LeavesNoPeriodAtZeroInAShortRun) {
  for (const Scenario scenario :
       {Scenario::kWarmup, Scenario::kSpikes, Scenario::kLeak, Scenario::kStaircase,
        Scenario::kSawtooth, Scenario::kFragmentation, Scenario::kDataloaderCow}) {
    TrainerOptions options = options_for(scenario);
    options.steps = 1;

    const Plan plan = plan_run(options);

    EXPECT_GE(plan.epoch_steps, 1U);
    EXPECT_TRUE(!plan.leak || plan.leak->bytes_per_step == 100 * kMiB);
    EXPECT_TRUE(!plan.copy_on_write || plan.copy_on_write->until_step >= 1);
  }
}

}  // namespace
}  // namespace tidemark::harness
