// SPDX-License-Identifier: Apache-2.0
#include "live/owners.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/units.h"
#include "tests/support/fake_watch_system.h"
#include "tests/support/made_looks.h"
#include "tests/support/temp_tree.h"

namespace tidemark::live {
namespace {

using testing::HasSubstr;
using tests::FakeWatchSystem;
using tests::MadeLooks;

constexpr pid_t kTrainer = 3'900'001;
constexpr std::uint64_t kMiBytes = kMiB;

class RunOwnersTest : public testing::Test {
 protected:
  RunOwnersTest() {
    options.watch.pss = monitor::PssMode::kOff;
    options.watch.json = true;
    options.watch.target.pids = {kTrainer};
    system.put(kTrainer, 100);
    for (int second = 1; second < 400; ++second) {
      system.at(second + 0.5, [this, second] {
        if (!system_is_over) {
          system.put(kTrainer, 100 + static_cast<std::uint64_t>(second));
        }
      });
    }
  }

  nlohmann::json answer() const { return nlohmann::json::parse(system.stdout_text()); }

  FakeWatchSystem system;
  MadeLooks looks;
  OwnersOptions options;
  bool system_is_over = false;
};

TEST_F(RunOwnersTest, LooksAsOftenAsItIsAskedAndAnswers) {
  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitOk) << system.stderr_text();

  ASSERT_EQ(looks.looks().size(), 3U);
  const nlohmann::json json = answer();
  ASSERT_EQ(json["looks"].size(), 3U);
  EXPECT_GE(json["looks"][1]["t_s"].get<double>(), 20.0);
  EXPECT_GE(json["looks"][2]["t_s"].get<double>(), 40.0);
  EXPECT_EQ(json["looks"][0]["footprint_bytes"], 101 * kMiBytes);
  EXPECT_EQ(json["owners"][0]["path"], "__main__.cache");
  EXPECT_EQ(json["owners"][0]["verdict"], "growing");
  EXPECT_THAT(system.stderr_text(), HasSubstr("look 1 of 3"));
  EXPECT_THAT(system.stderr_text(), HasSubstr("look 3 of 3"));
}

TEST_F(RunOwnersTest, CountsStepsFromTheFirstLookOn) {
  const tests::TempTree dir;
  dir.write("log", "");
  options.watch.log_file = dir.path("log");
  options.every.steps = 5;
  std::string log;
  for (int second = 1; second < 60; ++second) {
    system.at(second + 0.2, [&, second] {
      log += "Step " + std::to_string(second) + "\n";
      dir.write("log", log);
    });
  }

  run_owners(options, &system, looks.make());

  const nlohmann::json json = answer();
  ASSERT_EQ(json["looks"].size(), 3U);
  for (const nlohmann::json& look : json["looks"]) {
    EXPECT_TRUE(look["step"].is_number()) << look;
  }
  EXPECT_GE(json["looks"][1]["step"].get<int>() - json["looks"][0]["step"].get<int>(), 5);
  EXPECT_TRUE(json["owners"][0]["growth_bytes_per_step"].is_number());
}

TEST_F(RunOwnersTest, RecordsAndShowsTheSameAgain) {
  const tests::TempTree dir;
  options.watch.output = dir.path("run.tidemark");
  ASSERT_EQ(run_owners(options, &system, looks.make()), kExitOk) << system.stderr_text();
  const std::string live = system.stdout_text();
  OwnersOptions again;
  again.input = options.watch.output;
  again.watch.json = true;

  testing::internal::CaptureStdout();
  EXPECT_EQ(run_owners(again), kExitOk);
  const std::string shown = testing::internal::GetCapturedStdout();

  EXPECT_EQ(nlohmann::json::parse(shown)["owners"], nlohmann::json::parse(live)["owners"]);
  EXPECT_EQ(nlohmann::json::parse(shown)["looks"], nlohmann::json::parse(live)["looks"]);
}

TEST_F(RunOwnersTest, GivesTheAnswerSoFarWhenItIsTold) {
  options.looks = 1000;
  system.at(70.0, [this] { system.deliver(SIGINT); });

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitOk);

  const std::size_t seen = answer()["looks"].size();
  EXPECT_GE(seen, 1U);
  EXPECT_LE(seen, 4U);
}

TEST_F(RunOwnersTest, GivesUpALookThatIsUnderWay) {
  looks.waits = true;
  system.at(5.0, [this] { system.deliver(SIGINT); });

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitTarget);

  EXPECT_THAT(system.stderr_text(), HasSubstr("the last look was given up"));
  EXPECT_TRUE(answer()["looks"].empty());
}

TEST_F(RunOwnersTest, AnswersWhenTheProcessExitsBeforeTheLastLook) {
  system.at(45.0, [this] {
    system_is_over = true;
    system.end(kTrainer);
  });
  options.looks = 100;

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitOk);

  EXPECT_GE(answer()["looks"].size(), 1U);
}

TEST_F(RunOwnersTest, SaysWhyItMayNotLook) {
  looks.change = [](const HeapFacts&) {
    return Result<HeapFacts>(Error{Errc::kUnsupported, "it has no memory"});
  };

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitTarget);

  EXPECT_THAT(system.stderr_text(), HasSubstr("cannot look at the heap of pid 3900001: it has no "
                                              "memory"));
  EXPECT_EQ(system.stdout_text(), "");
  EXPECT_LT(system.now_s(), 390.0);
}

TEST_F(RunOwnersTest, EndsAfterTheFirstLookWhereThereIsNothingToSee) {
  looks.change = [](HeapFacts facts) {
    facts.looks[0].look.objects = 0;
    facts.looks[0].look.problem = "there is no Python in it";
    return Result<HeapFacts>(std::move(facts));
  };

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitTarget);

  EXPECT_EQ(looks.looks().size(), 1U);
  EXPECT_EQ(answer()["looks"][0]["problem"], "there is no Python in it");
}

TEST_F(RunOwnersTest, CannotTellWhenTheGrowthIsNotInOwners) {
  looks.change = [](HeapFacts facts) {
    facts.looks[0].owners.clear();
    return Result<HeapFacts>(std::move(facts));
  };

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitUndetermined);
}

TEST_F(RunOwnersTest, LooksAtTheLargestProcessesAndOnlyAtSome) {
  options.looks = 2;
  for (pid_t i = 1; i <= 6; ++i) {
    system.put(kTrainer + i, 10 * static_cast<std::uint64_t>(i), kTrainer);
  }

  run_owners(options, &system, looks.make());

  std::vector<pid_t> first;
  for (const auto& [pid, number] : looks.looks()) {
    if (number == 0) {
      first.push_back(pid);
    }
  }
  EXPECT_THAT(first, testing::SizeIs(4));
  EXPECT_EQ(first.front(), kTrainer);
}

TEST_F(RunOwnersTest, WritesTheObjectsOfTheLastLook) {
  const tests::TempTree dir;
  options.exports.heapsnapshot = dir.path("a.heapsnapshot");
  options.exports.dot = dir.path("a.dot");
  options.exports.dot_owner = "__main__.cache";

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitOk) << system.stderr_text();

  EXPECT_EQ(*read_file(options.exports.heapsnapshot), "{}");
  EXPECT_EQ(*read_file(options.exports.dot), "digraph of __main__.cache");
}

TEST_F(RunOwnersTest, LeavesNoPartOfAnExportThatCouldNotBeWritten) {
  const tests::TempTree dir;
  options.exports.heapsnapshot = dir.path("a.heapsnapshot");
  options.exports.dot = dir.path("a.dot");
  options.exports.replace = true;
  dir.write("a.dot", "precious");
  looks.full_disk_at_dot = true;

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitTarget);

  EXPECT_EQ(*read_file(options.exports.heapsnapshot), "{}");
  EXPECT_EQ(*read_file(options.exports.dot), "precious");
  EXPECT_THAT(system.stderr_text(), HasSubstr("a.dot: cannot write: No space left on device"));
  EXPECT_EQ(answer()["looks"].size(), 3U);
  const std::filesystem::directory_iterator files(dir.path("."));
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);
}

TEST_F(RunOwnersTest, ReplacesNoExportUnlessItIsTold) {
  const tests::TempTree dir;
  options.exports.dot = dir.path("a.dot");
  dir.write("a.dot", "precious");

  EXPECT_EQ(run_owners(options, &system, looks.make()), kExitTarget);

  EXPECT_EQ(*read_file(options.exports.dot), "precious");
  EXPECT_THAT(system.stderr_text(), HasSubstr("File exists"));
  EXPECT_EQ(answer()["looks"].size(), 3U);
}

TEST_F(RunOwnersTest, PassesOnTheStatusOfACommand) {
  options.watch.target.pids.clear();
  options.watch.target.command = {"/bin/true"};
  options.watch.step_regex = kNoStepRegex;
  system.at(2.5, [&] { system.end_command(3 << 8); });

  EXPECT_EQ(run_owners(options, &system, looks.make()), 3);

  EXPECT_TRUE(looks.looks().empty()) << "it had not even loaded";
}

TEST(LookEvery, IsATimeOrANumberOfSteps) {
  EXPECT_EQ(parse_look_every("90s")->ns, 90 * kNsPerSecond);
  EXPECT_EQ(parse_look_every("90s")->steps, std::nullopt);
  EXPECT_EQ(parse_look_every("50steps")->steps, 50);
  EXPECT_EQ(parse_look_every("1step")->steps, 1);
  for (const char* bad : {"", "20", "0steps", "-5steps", "steps", "10ms", "x"}) {
    EXPECT_FALSE(parse_look_every(bad)) << bad;
  }
}

TEST(LookBudget, IsATimeASizeOrBoth) {
  heap::HeapOptions options;

  EXPECT_TRUE(parse_look_budget("30s,2GiB", options));
  EXPECT_EQ(options.most_seconds, 30.0);
  EXPECT_EQ(options.most_memory_bytes, 2048 * kMiBytes);
  EXPECT_TRUE(parse_look_budget("5s", options));
  EXPECT_EQ(options.most_seconds, 5.0);
  for (const char* bad : {"", "10", "0s", "1KiB", "10s,", "1GiB,x"}) {
    EXPECT_FALSE(parse_look_budget(bad, options)) << bad;
  }
}

TEST(FrozenUse, IsOneOfThree) {
  EXPECT_EQ(*parse_frozen_use("never"), heap::FrozenUse::kNever);
  EXPECT_FALSE(parse_frozen_use("maybe"));
}

TEST(OwnersOfARecording, SayThatThereAreNone) {
  const tests::TempTree dir;
  dir.write("a.csv", "t_s,rss_mb\n0,1\n1,2\n");
  OwnersOptions options;
  options.input = dir.path("a.csv");

  testing::internal::CaptureStderr();
  EXPECT_EQ(run_owners(options), kExitTarget);

  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("has no looks at a heap"));
}

}  // namespace
}  // namespace tidemark::live
