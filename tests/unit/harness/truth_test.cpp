// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/truth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tidemark::harness {
namespace {

using nlohmann::json;

constexpr double kMiB = 1024.0 * 1024.0;

TrainerOptions options_for(std::set<Scenario> scenarios) {
  TrainerOptions options;
  options.scenarios = std::move(scenarios);
  options.steps = 200;
  options.mb = 100;
  return options;
}

json truth_of(const TrainerOptions& options, const RunFacts& facts = {}) {
  return json::parse(truth_json(options, plan_run(options), facts));
}

TEST(Truth, NamesTheClassOfEveryScenario) {
  const std::vector<std::pair<Scenario, std::string>> classes = {
      {Scenario::kSteady, "stable"},        {Scenario::kWarmup, "warmup"},
      {Scenario::kSpikes, "spikes"},        {Scenario::kLeak, "leak"},
      {Scenario::kStaircase, "leak"},       {Scenario::kSawtooth, "spikes"},
      {Scenario::kFragmentation, "warmup"}, {Scenario::kCompileWorkers, "stable"},
      {Scenario::kDataloaderCow, "warmup"}, {Scenario::kReplay, "warmup"},
  };
  for (const auto& [scenario, expected] : classes) {
    EXPECT_EQ(truth_of(options_for({scenario}))["class"], expected) << name_of(scenario);
  }
}

TEST(Truth, NamesTheClassOfEveryReplay) {
  const std::vector<std::pair<Replay, std::string>> classes = {{Replay::kJob1, "warmup"},
                                                               {Replay::kJob2, "warmup"},
                                                               {Replay::kValspike, "spikes"},
                                                               {Replay::kSlowleak, "leak"},
                                                               {Replay::kCatastrophic, "leak"}};
  for (const auto& [replay, expected] : classes) {
    TrainerOptions options = options_for({Scenario::kReplay});
    options.replay = replay;

    EXPECT_EQ(truth_of(options)["class"], expected) << name_of(replay);
  }
}

TEST(Truth, TellsAllPatternsOfARunThatDoesSeveralThings) {
  const json truth = truth_of(options_for({Scenario::kWarmup, Scenario::kSpikes, Scenario::kLeak}));

  EXPECT_EQ(truth["class"], "leak");
  EXPECT_EQ(truth["scenario"], "warmup+spikes+leak");
  ASSERT_EQ(truth["patterns"].size(), 3U);
  EXPECT_EQ(truth["patterns"][0]["kind"], "warmup");
  EXPECT_EQ(truth["patterns"][1]["kind"], "spikes");
  EXPECT_EQ(truth["patterns"][2]["kind"], "leak");
  EXPECT_EQ(truth["plateau_step"], 40);
}

TEST(Truth, GivesALeakPerStepAndPerSecond) {
  TrainerOptions options = options_for({Scenario::kLeak});
  options.mb_per_step = 2;
  options.step_time_s = 0.25;

  const json leak = truth_of(options)["patterns"][0];

  EXPECT_EQ(leak["from_step"], 20);
  EXPECT_DOUBLE_EQ(leak["bytes_per_step"].get<double>(), 2 * kMiB);
  EXPECT_DOUBLE_EQ(leak["bytes_per_s"].get<double>(), 8 * kMiB);
}

TEST(Truth, CountsTheTimeOfEvaluationsInTheRate) {
  TrainerOptions options = options_for({Scenario::kLeak});
  options.mb_per_step = 2;
  options.step_time_s = 0.25;
  options.eval_every = 10;  // two batches, each as long as a step

  const json leak = truth_of(options)["patterns"][0];

  EXPECT_DOUBLE_EQ(leak["bytes_per_s"].get<double>(), 8 * kMiB / 1.2);
}

TEST(Truth, PrefersTheMeasuredTimeOfAStep) {
  TrainerOptions options = options_for({Scenario::kLeak});
  options.mb_per_step = 2;
  RunFacts facts;
  facts.seconds_per_step = 0.5;

  const json leak = truth_of(options, facts)["patterns"][0];

  EXPECT_DOUBLE_EQ(leak["bytes_per_s"].get<double>(), 4 * kMiB);
}

TEST(Truth, CallsAStaircaseALeakInSteps) {
  const json leak = truth_of(options_for({Scenario::kStaircase}))["patterns"][0];

  EXPECT_EQ(leak["shape"], "steps");
  EXPECT_DOUBLE_EQ(leak["bytes_per_step"].get<double>(), 10 * kMiB / 20);
}

TEST(Truth, KnowsThatACleanUpCollectsEarlier) {
  TrainerOptions options = options_for({Scenario::kSawtooth});
  options.cleanup_every = 5;

  const json spikes = truth_of(options)["patterns"][0];

  EXPECT_EQ(spikes["period_steps"], 5);
  EXPECT_DOUBLE_EQ(spikes["height_bytes"].get<double>(), 50 * kMiB);
}

TEST(Truth, HasNoLeakThatNeverBegins) {
  TrainerOptions options = options_for({Scenario::kLeak});
  options.from_step = 200;

  EXPECT_EQ(truth_of(options)["class"], "stable");
}

// A run that took the steps from `first` to `last`, and ended.
RunFacts ended(std::uint64_t first, std::uint64_t last) {
  RunFacts facts;
  facts.complete = true;
  facts.first_step = first;
  facts.steps_done = last;
  return facts;
}

TEST(Truth, OfARunThatWasStoppedHasNothingThatDidNotBegin) {
  TrainerOptions leak = options_for({Scenario::kLeak});
  leak.cause = Cause::kShm;
  leak.from_step = 150;

  const json stopped = truth_of(leak, ended(1, 150));

  EXPECT_EQ(stopped["class"], "stable");
  EXPECT_TRUE(stopped["patterns"].empty());
  EXPECT_TRUE(stopped["cause"].is_null());
  EXPECT_EQ(stopped["where"]["kind"], "process");
  EXPECT_EQ(truth_of(leak, ended(1, 151))["class"], "leak");
  EXPECT_EQ(truth_of(options_for({Scenario::kSpikes}), ended(1, 24))["class"], "stable");
  EXPECT_EQ(truth_of(options_for({Scenario::kSpikes}), ended(1, 25))["class"], "spikes");
  EXPECT_EQ(truth_of(options_for({Scenario::kStaircase}), ended(1, 19))["class"], "stable");
  EXPECT_EQ(truth_of(options_for({Scenario::kStaircase}), ended(1, 20))["class"], "leak");
}

TEST(Truth, OfARunThatIsNotOverYetIsAsPlanned) {
  RunFacts facts = ended(1, 5);
  facts.complete = false;

  EXPECT_EQ(truth_of(options_for({Scenario::kLeak}), facts)["class"], "leak");
}

TEST(Truth, OfAWarmupThatWasStoppedHasGrownSoFarAndHasNoPlateau) {
  for (const Scenario scenario :
       {Scenario::kWarmup, Scenario::kFragmentation, Scenario::kDataloaderCow}) {
    const json whole = truth_of(options_for({scenario}), ended(1, 200))["patterns"][0];
    const auto half = whole["to_step"].get<std::uint64_t>() / 2;

    const json truth = truth_of(options_for({scenario}), ended(1, half));

    EXPECT_EQ(truth["class"], "warmup");
    EXPECT_TRUE(truth["plateau_step"].is_null());
    EXPECT_EQ(truth["patterns"][0]["to_step"], half);
    EXPECT_NEAR(truth["patterns"][0]["growth_bytes"].get<double>(),
                whole["growth_bytes"].get<double>() / 2, 1);
  }
}

TEST(Truth, OfAResumedRunBeginsWhereTheRunDid) {
  const json warmup = truth_of(options_for({Scenario::kWarmup}), ended(51, 200));
  EXPECT_EQ(warmup["first_step"], 51);
  EXPECT_EQ(warmup["patterns"][0]["from_step"], 50);
  EXPECT_EQ(warmup["plateau_step"], 90) << "a new process fills its cache again";

  const json leak = truth_of(options_for({Scenario::kLeak}), ended(51, 200));
  EXPECT_EQ(leak["patterns"][0]["from_step"], 50);

  const json later = truth_of(options_for({Scenario::kLeak}), ended(11, 200));
  EXPECT_EQ(later["patterns"][0]["from_step"], 20);

  const json staircase = truth_of(options_for({Scenario::kStaircase}), ended(51, 200));
  EXPECT_EQ(staircase["patterns"][0]["from_step"], 60);
}

TEST(Truth, OfAResumedRunHasNothingThatWasOver) {
  EXPECT_EQ(truth_of(options_for({Scenario::kFragmentation}), ended(51, 200))["class"], "stable");
  EXPECT_EQ(truth_of(options_for({Scenario::kSpikes}), ended(181, 199))["class"], "stable");
  EXPECT_EQ(truth_of(options_for({Scenario::kReplay}), ended(101, 200))["class"], "stable");
  EXPECT_EQ(truth_of(options_for({Scenario::kLeak}), ended(201, 200))["class"], "stable");
}

TEST(Truth, KnowsThatNewWorkersCopyAtOnceWhatOthersHadCopied) {
  const json truth = truth_of(options_for({Scenario::kDataloaderCow}), ended(151, 200));

  EXPECT_EQ(truth["class"], "warmup");
  EXPECT_EQ(truth["plateau_step"], 151);
  EXPECT_DOUBLE_EQ(truth["patterns"][0]["growth_bytes"].get<double>(), 4 * 100 * kMiB);
}

TEST(Truth, OfPartOfAReplayIsAboutThatPart) {
  TrainerOptions options = options_for({Scenario::kReplay});
  options.scale = 0.05;

  const json job = truth_of(options, ended(51, 200));

  EXPECT_EQ(job["patterns"][0]["from_step"], 50);
  EXPECT_EQ(job["plateau_step"], 90);
  EXPECT_NEAR(job["patterns"][0]["growth_bytes"].get<double>(), 0.05 * (17882 - 12066) * kMiB, 1);
  options.replay = Replay::kValspike;
  EXPECT_EQ(truth_of(options, ended(1, 33))["class"], "stable");
  EXPECT_EQ(truth_of(options, ended(1, 34))["class"], "spikes");
  EXPECT_EQ(truth_of(options, ended(36, 36))["class"], "spikes");
  EXPECT_EQ(truth_of(options, ended(40, 73))["class"], "stable");
}

TEST(Truth, SaysWhereTheMemoryIs) {
  TrainerOptions shm = options_for({Scenario::kLeak});
  shm.cause = Cause::kShm;

  EXPECT_EQ(truth_of(shm)["where"]["kind"], "shm");
  EXPECT_EQ(truth_of(options_for({Scenario::kDataloaderCow}))["where"]["role"],
            "dataloader_worker");
  EXPECT_EQ(truth_of(options_for({Scenario::kWarmup}))["where"]["role"], "trainer");
}

TEST(Truth, ScalesTheGrowthOfAReplayedJob) {
  TrainerOptions options = options_for({Scenario::kReplay});
  options.scale = 0.05;

  const json warmup = truth_of(options)["patterns"][0];

  EXPECT_NEAR(warmup["growth_bytes"].get<double>(), 0.05 * (17882 - 5376) * kMiB, 1);
  EXPECT_EQ(warmup["to_step"], 90);
}

TEST(Truth, WritesUnknownAsNull) {
  const json truth = truth_of(options_for({Scenario::kSteady}));

  for (const char* key :
       {"cause", "plateau_step", "allocating_line", "retaining_line", "seconds", "wrapper_pid"}) {
    ASSERT_TRUE(truth.contains(key)) << key;
    EXPECT_TRUE(truth[key].is_null()) << key;
  }
  EXPECT_EQ(truth["complete"], false);
}

TEST(Truth, ListsTheProcesses) {
  RunFacts facts;
  facts.processes = {{11, "wrapper"}, {12, "trainer"}};
  facts.wrapper_pid = 11;

  const json truth = truth_of(options_for({Scenario::kSteady}), facts);

  EXPECT_EQ(truth["processes"][1], (json{{"pid", 12}, {"role", "trainer"}}));
  EXPECT_EQ(truth["wrapper_pid"], 11);
}

}  // namespace
}  // namespace tidemark::harness
