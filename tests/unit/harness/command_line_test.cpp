// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tidemark::harness {
namespace {

using ::testing::AllOf;
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
  EXPECT_EQ(problem_with({"warmup", "7"}),
            "WORKERS does nothing without compile-workers or dataloader-cow");
  EXPECT_THAT(problem_with({"compile-workers", "7", "8"}), HasSubstr("unexpected argument '8'"));
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
  EXPECT_THAT(problem_with({"leek"}),
              AllOf(HasSubstr("SCENARIO needs to be one of steady,"), HasSubstr("not 'leek'")));
  EXPECT_EQ(problem_with({"leak", "--case", "shm"}), "unknown option '--case'");
  EXPECT_EQ(problem_with({"leak", "--cause", "gc"}),
            "--cause needs one of collator, autograd, optimizer, native, shm, pinned, not 'gc'");
  EXPECT_EQ(problem_with({"leak", "--steps", "0"}),
            "--steps needs a whole number from 1 to 1000000000, not '0'");
  EXPECT_EQ(problem_with({"leak", "--mb", "-1"}), "--mb needs a number from 0 on, not '-1'");
  EXPECT_EQ(problem_with({"leak", "--mb", "nan"}), "--mb needs a number from 0 on, not 'nan'");
  EXPECT_THAT(problem_with({"leak", "--mb"}), HasSubstr("--mb"));
  EXPECT_EQ(problem_with({"leak", "--wrapper=yes"}), "--wrapper: takes no value");
  EXPECT_EQ(problem_with({"leak", "--truth", ""}), "--truth needs a path, not ''");
  EXPECT_EQ(problem_with({"leak", "--step-time", "soon"}),
            "--step-time needs a duration such as 500ms or 10s, not 'soon'");
  EXPECT_EQ(problem_with({"leak", "--help"}), "unknown option '--help'");
}

TEST(TrainerOptions, LetNoControlCharacterOntoTheTerminal) {
  EXPECT_THAT(problem_with({"leak", "--cause", "\x1b[2J"}), HasSubstr("not '\\x1b[2J'"));
}

TEST(TrainerOptions, TakeTheLastOfTwoValues) {
  const auto options = parse({"--steps", "3", "leak", "--steps", "5", "--wrapper", "--wrapper"});

  ASSERT_TRUE(options);
  EXPECT_EQ(options->steps, 5U);
  EXPECT_TRUE(options->wrapper);
}

// ---- The whole command line ----

std::string help_of(const std::vector<std::string>& words) {
  const auto command = parse_command_line(words, std::nullopt);
  EXPECT_TRUE(command);
  return command ? std::get<std::string>(*command) : "";
}

std::string usage_problem(const std::vector<std::string>& words) {
  const auto command = parse_command_line(words, std::nullopt);
  return command ? "" : command.error().what;
}

TEST(CommandLine, ListsEveryOptionAndWhatEachScenarioDoesInTheHelp) {
  const std::string help = help_of({"train", "--help"});

  EXPECT_THAT(help, HasSubstr("Usage: tidemark-harness train "));
  EXPECT_THAT(help, HasSubstr("  staircase        each checkpoint keeps a copy\n"));
  EXPECT_THAT(help, HasSubstr("\nExample:\n  tidemark-harness train "));
  for (const char* flag :
       {"--steps", "--mb-per-step", "--worker-mb", "--progress-fd", "--replay"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
}

TEST(CommandLine, HasAHelpForEachCommandAndForItself) {
  EXPECT_THAT(help_of({"serve-jobs", "-h"}), HasSubstr("\n  tidemark-harness serve-jobs --jobs 3"));
  EXPECT_THAT(help_of({"--help"}), AllOf(HasSubstr("train"), HasSubstr("serve-jobs")));
}

TEST(CommandLine, TakesTheOptionsOfATrainingRun) {
  const auto command =
      parse_command_line(std::vector<std::string>{"train", "leak", "--mb", "7"}, std::nullopt);

  ASSERT_TRUE(command);
  EXPECT_EQ(std::get<TrainerOptions>(*command).mb, 7);
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(usage_problem({}), "");
  EXPECT_EQ(usage_problem({"fly"}), "unexpected argument 'fly'");
  EXPECT_EQ(usage_problem({"serve-jobs", "warmup"}), "unexpected argument 'warmup'");
  EXPECT_EQ(usage_problem({"train", "--", "leak"}), "train takes nothing after --");
  EXPECT_THAT(usage_problem({"train", "--mb", "x"}), HasSubstr("--mb needs a number"));
}

}  // namespace
}  // namespace tidemark::harness
