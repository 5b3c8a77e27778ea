// SPDX-License-Identifier: Apache-2.0
// Finding the training job of the whole machine: these tests run alone, as another tree would be
// another candidate.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/monitor/command_output.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::json_lines;
using tests::of_kind;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::TrainingTree;

TEST(FindCommand, NamesThePythonProcessNotTheWrapperWithReasons) {
  const TrainingTree tree;
  const auto trainer = tree.truth().at("trainer").get<pid_t>();

  const Output text = run_tool({"find"});
  const Output as_json = run_tool({"find", "--json"});

  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("pid " + std::to_string(trainer)));
  EXPECT_THAT(text.out, HasSubstr("20 compile workers"));
  const json best = json::parse(as_json.out).at("candidates").at(0);
  EXPECT_EQ(best.at("pid"), trainer);
  EXPECT_EQ(best.at("role"), "trainer");
  EXPECT_FALSE(best.at("reasons").empty());
  EXPECT_THAT(best.at("below").get<std::vector<pid_t>>(), testing::Contains(tree.root()));
}

TEST(FindCommand, TwoJobsThatAreEquallyGoodAreNotGuessed) {
  const TrainingTree one;
  const TrainingTree two;

  const Output output = run_tool({"find"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err,
              HasSubstr("--pid " + std::to_string(one.truth().at("trainer").get<pid_t>())));
  EXPECT_THAT(output.err,
              HasSubstr("--pid " + std::to_string(two.truth().at("trainer").get<pid_t>())));
  const Output monitored = run_tool({"monitor", "--find-training"});
  EXPECT_EQ(monitored.exit_code, 3);
  EXPECT_EQ(monitored.err, output.err) << "both go by the same evidence, and say it the same way";
}

TEST(FindCommand, OnAMachineWithNothingToFindItSaysWhatItLookedFor) {
  const std::vector<std::string> alone{"unshare", "--pid", "--fork", "--mount-proc"};
  const auto run_alone = [&](std::vector<std::string> command) {
    command.insert(command.begin(), alone.begin(), alone.end());
    Subprocess process(command);
    process.close_input();
    const int exit_code = process.wait();
    return Output{exit_code, process.output(), process.errors()};
  };
  if (run_alone({"true"}).exit_code != 0) {
    GTEST_SKIP() << "may not make namespaces";
  }

  const Output text = run_alone({tests::tool_path(), "find"});
  const Output as_json = run_alone({tests::tool_path(), "find", "--json"});

  EXPECT_EQ(text.exit_code, 3);
  EXPECT_EQ(text.out, "");
  EXPECT_THAT(text.err, HasSubstr("found no training process"));
  EXPECT_THAT(text.err, HasSubstr("hint: name the process with --pid"));
  EXPECT_EQ(as_json.exit_code, 3);
  EXPECT_EQ(json::parse(as_json.out).at("picked"), nullptr);
  EXPECT_TRUE(json::parse(as_json.out).at("candidates").empty());
}

// An interrupt ends it at once before that.
bool wait_until_it_takes_signals(pid_t pid) {
  for (int i = 0; i < 400; ++i) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:") &&
          (std::stoull(line.substr(7), nullptr, 16) & (1ULL << (SIGINT - 1))) != 0) {
        return true;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

TEST(TidemarkAlone, NamesTheJobAndAnswersWhenItIsInterrupted) {
  const TrainingTree tree;
  const std::string trainer = std::to_string(tree.truth().at("trainer").get<pid_t>());

  Subprocess tool({tests::tool_path()});
  tool.close_input();
  ASSERT_TRUE(wait_until_it_takes_signals(tool.pid()));
  tool.read_for(std::chrono::seconds(1));
  EXPECT_EQ(tool.output(), "") << "it watches for 20 s";
  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 4) << tool.errors();
  EXPECT_THAT(tool.output(), testing::StartsWith("training job: pid " + trainer + " ("));
  EXPECT_THAT(tool.output(), HasSubstr("\nnext: tidemark track --pid "));
  EXPECT_EQ(std::count(tool.output().begin(), tool.output().end(), '\n'), 3) << tool.output();
}

TEST(TidemarkAlone, ListsTheCommandsOnAMachineWithNothingToFind) {
  Subprocess tool({"unshare", "--pid", "--fork", "--mount-proc", tests::tool_path()});
  tool.close_input();
  const int exit_code = tool.wait();
  if (tool.output().empty()) {
    GTEST_SKIP() << "may not make namespaces";
  }

  EXPECT_EQ(exit_code, 3);
  EXPECT_THAT(tool.output(), testing::StartsWith("found no training process"));
  for (const char* command : {"find", "monitor", "track", "profile", "guard", "check"}) {
    EXPECT_THAT(tool.output(), HasSubstr(std::string("\n  ") + command + " "));
  }
}

TEST(FindCommand, TheMonitorFindsTheTrainingJobByItself) {
  const TrainingTree tree;

  const Output output = run_tool({"monitor", "--find-training", "--json", "--duration", "200ms"});

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto ticks = of_kind(json_lines(output.out), "tick");
  ASSERT_FALSE(ticks.empty());
  EXPECT_EQ(ticks.back().at("roles").at("trainer").at("count"), 1);
}

}  // namespace
}  // namespace tidemark
