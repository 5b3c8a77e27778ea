// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/command_line.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ServeOptions> parse(std::vector<std::string> words,
                           const std::optional<std::string>& environment = std::nullopt) {
  words.insert(words.begin(), "serve-jobs");
  auto command = parse_command_line(words, environment);
  if (!command) {
    return command.error();
  }
  return std::get<ServeOptions>(*std::move(command));
}

TEST(ServeOptions, AreThreeIsolatedJobsWithoutAWord) {
  const auto options = parse({});

  ASSERT_TRUE(options);
  EXPECT_EQ(options->server.isolation, Isolation::kSubprocess);
  ASSERT_EQ(options->server.jobs.size(), 3U);
  EXPECT_EQ(options->server.jobs[2].id, 3);
  EXPECT_THAT(options->server.jobs[2].arguments, ElementsAre("warmup"));
}

TEST(ServeOptions, RepeatWhatComesAfterTheDashes) {
  const auto options = parse({"--jobs", "2", "--", "leak", "--mb", "40"});

  ASSERT_TRUE(options);
  ASSERT_EQ(options->server.jobs.size(), 2U);
  EXPECT_THAT(options->server.jobs[1].arguments, ElementsAre("leak", "--mb", "40"));
}

TEST(ServeOptions, TakeJobsOneByOne) {
  const auto options =
      parse({"--job", "steady", "--job", "leak  --mb 40", "--job", "--replay job1"});

  ASSERT_TRUE(options);
  ASSERT_EQ(options->server.jobs.size(), 3U);
  EXPECT_THAT(options->server.jobs[2].arguments, ElementsAre("--replay", "job1"));
  EXPECT_THAT(options->server.jobs[1].arguments, ElementsAre("leak", "--mb", "40"));
}

TEST(ServeOptions, PutSingleJobsBeforeTheRepeatedOnes) {
  const auto options = parse({"--jobs", "2", "--job", "steady", "--", "leak"});

  ASSERT_TRUE(options);
  ASSERT_EQ(options->server.jobs.size(), 3U);
  EXPECT_THAT(options->server.jobs[0].arguments, ElementsAre("steady"));
  EXPECT_THAT(options->server.jobs[2].arguments, ElementsAre("leak"));
  EXPECT_EQ(options->server.jobs[2].id, 3);
}

TEST(ServeOptions, FollowTheEnvironmentUnlessTheCommandLineSaysOtherwise) {
  EXPECT_EQ(parse({}, "false")->server.isolation, Isolation::kInprocess);
  EXPECT_EQ(parse({}, "true")->server.isolation, Isolation::kSubprocess);
  EXPECT_EQ(parse({"--isolation", "subprocess"}, "false")->server.isolation,
            Isolation::kSubprocess);
}

TEST(ServeOptions, RefuseAnEnvironmentThatIsNeitherTrueNorFalse) {
  const auto options = parse({}, "maybe");

  ASSERT_FALSE(options);
  EXPECT_THAT(options.error().what, HasSubstr("TRAINING_USE_SUBPROCESS"));
}

TEST(ServeOptions, AskTheEnvironmentOnlyWhereTheCommandLineIsSilent) {
  const auto options = parse({"--isolation", "inprocess"}, "maybe");

  ASSERT_TRUE(options);
  EXPECT_EQ(options->server.isolation, Isolation::kInprocess);
  EXPECT_TRUE(parse_command_line(std::vector<std::string>{"serve-jobs", "--help"}, "maybe"));
}

TEST(ServeOptions, TakeValuesAfterAnEqualsSign) {
  const auto options = parse({"--jobs=2", "--isolation=inprocess", "--status=a=b", "--", "leak"});

  ASSERT_TRUE(options);
  EXPECT_EQ(options->server.jobs.size(), 2U);
  EXPECT_EQ(options->server.isolation, Isolation::kInprocess);
  EXPECT_EQ(options->server.status_path, "a=b");
}

TEST(ServeOptions, SayWhichJobIsCancelledAndAfterWhichStep) {
  const auto options = parse({"--cancel-job", "2", "--after", "5", "--grace", "500ms"});

  ASSERT_TRUE(options);
  ASSERT_TRUE(options->server.cancel);
  EXPECT_EQ(options->server.cancel->job_id, 2);
  EXPECT_EQ(options->server.cancel->after_step, 5);
  EXPECT_FALSE(options->server.crash);
  EXPECT_EQ(options->grace_ns, 500'000'000);
}

TEST(ServeOptions, RefuseNonsense) {
  const std::vector<std::vector<std::string>> lines = {
      {"--jobs"},
      {"--jobs", "0"},
      {"--jobs="},
      {"--json=yes"},
      {"--jobs", "-1"},
      {"--jobs", "many"},
      {"--jobs", "100000"},
      {"warmup"},
      {"--what"},
      {"--after", "3"},
      {"--cancel-job", "9"},
      {"--crash-job", "4"},
      {"--grace", "soon"},
      {"--isolation", "thread"},
      {"--job", "steady", "--jobs", "2"},
      {"--status", ""},
      {"--job"},
  };
  for (const auto& words : lines) {
    const auto options = parse(words);
    ASSERT_FALSE(options) << words.front();
    EXPECT_EQ(options.error().code, Errc::kUsage) << words.front();
    const std::string option = words.front().substr(0, words.front().find('='));
    EXPECT_THAT(options.error().what, HasSubstr(option));
  }
}

}  // namespace
}  // namespace tidemark::harness
