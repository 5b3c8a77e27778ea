// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tidemark::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<TrainerOptions> parse(const std::vector<std::string>& words) {
  return parse_trainer_options(words);
}

std::string problem_with(const std::vector<std::string>& words) {
  const auto options = parse(words);
  return options ? "" : options.error().what;
}

TEST(TrainerOptions, AreASteadyRunWhenNothingIsSaid) {
  const auto options = parse({});

  ASSERT_TRUE(options);
  EXPECT_THAT(options->scenarios, ElementsAre(Scenario::kSteady));
}

TEST(TrainerOptions, TakeSizesTimesAndPaths) {
  const auto options = parse({"leak", "--steps", "120", "--step-time", "20ms", "--cause", "shm",
                              "--mb-per-step", "0.5", "--from-step=40", "--truth", "t.json"});

  ASSERT_TRUE(options);
  EXPECT_EQ(options->steps, 120U);
  EXPECT_DOUBLE_EQ(options->step_time_s, 0.02);
  EXPECT_EQ(options->cause, Cause::kShm);
  EXPECT_EQ(options->mb_per_step, 0.5);
  EXPECT_EQ(options->from_step, 40U);
  EXPECT_EQ(options->truth_path, "t.json");
}

TEST(TrainerOptions, JoinScenarios) {
  const auto options = parse({"warmup+spikes"});

  ASSERT_TRUE(options);
  EXPECT_THAT(options->scenarios, ElementsAre(Scenario::kWarmup, Scenario::kSpikes));
}

TEST(TrainerOptions, AddTheScenarioOfAFlag) {
  const auto options = parse({"warmup", "--cause", "native"});

  ASSERT_TRUE(options);
  EXPECT_THAT(options->scenarios, ElementsAre(Scenario::kWarmup, Scenario::kLeak));
}

TEST(TrainerOptions, NeedNoScenarioForAReplay) {
  const auto options = parse({"--replay", "job2", "--scale", "0.1"});

  ASSERT_TRUE(options);
  EXPECT_THAT(options->scenarios, ElementsAre(Scenario::kReplay));
  EXPECT_EQ(options->replay, Replay::kJob2);
  EXPECT_EQ(options->scale, 0.1);
}

TEST(TrainerOptions, TakeTheNumberOfWorkersAfterTheScenario) {
  const auto options = parse({"compile-workers", "8", "--worker-mb", "20"});

  ASSERT_TRUE(options);
  EXPECT_EQ(options->workers, 8U);
  EXPECT_THAT(options->scenarios, ElementsAre(Scenario::kCompileWorkers));
}

TEST(TrainerOptions, TakeNoNumberAfterAScenarioWithoutWorkers) {
  EXPECT_THAT(problem_with({"warmup", "7"}), HasSubstr("unknown argument \"7\""));
}

TEST(TrainerOptions, RefuseAFlagThatWouldDoNothing) {
  EXPECT_EQ(problem_with({"--scale", "0.2"}), "--scale does nothing without --replay");
  EXPECT_EQ(problem_with({"leak", "--workers", "2"}),
            "--workers does nothing without compile-workers or dataloader-cow");
  EXPECT_EQ(problem_with({"leak", "--keep-shm"}),
            "--keep-shm does nothing without leak --cause shm");
  EXPECT_EQ(problem_with({"replay", "--scale", "0.2"}), "");
  EXPECT_EQ(problem_with({"--workers", "2", "--worker-mb", "9"}), "");
  EXPECT_EQ(problem_with({"--keep-shm", "--cause", "shm"}), "");
}

TEST(TrainerOptions, SayWhatIsWrong) {
  EXPECT_THAT(problem_with({"leek"}), HasSubstr("no scenario is called \"leek\""));
  EXPECT_THAT(problem_with({"leak", "--case", "shm"}), HasSubstr("unknown argument \"--case\""));
  EXPECT_THAT(problem_with({"leak", "--cause", "gc"}), HasSubstr("--cause is one of collator"));
  EXPECT_THAT(problem_with({"leak", "--steps", "0"}), HasSubstr("--steps needs a whole number"));
  EXPECT_THAT(problem_with({"leak", "--mb", "-1"}), HasSubstr("--mb needs a number"));
  EXPECT_THAT(problem_with({"leak", "--mb", "nan"}), HasSubstr("--mb needs a number"));
  EXPECT_THAT(problem_with({"leak", "--mb"}), HasSubstr("--mb needs a value"));
  EXPECT_THAT(problem_with({"leak", "--wrapper=yes"}), HasSubstr("--wrapper takes no value"));
  EXPECT_THAT(problem_with({"leak", "--step-time", "soon"}), HasSubstr("needs a duration"));
}

TEST(TrainerOptions, ListEveryFlagAndWhatEachScenarioDoesInTheUsage) {
  const std::string usage = trainer_usage();

  EXPECT_THAT(usage, HasSubstr("  staircase             each checkpoint keeps a copy\n"));
  EXPECT_THAT(usage, HasSubstr("\nexample: tidemark-harness train "));

  for (const char* flag :
       {"--steps", "--mb-per-step", "--worker-mb", "--progress-fd", "--replay"}) {
    EXPECT_THAT(usage, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace tidemark::harness
