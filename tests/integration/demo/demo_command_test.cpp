// SPDX-License-Identifier: Apache-2.0
// `tidemark demo` as a user runs it, on a trainer that is as good or as bad as its script.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/text.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::TempTree;

// A folder with a harness in it that behaves as `mode` says.
class Demo : public testing::Test {
 protected:
  std::string harness(const std::string& mode) const {
    tree_.write("harness", "#!/bin/sh\nexec " + tests::victim_path("scripted_harness") + " " +
                               mode + " \"$@\"\n");
    const std::string path = tree_.path("harness");
    ::chmod(path.c_str(), 0700);
    return path;
  }
  Output demo(const std::string& mode, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"demo", "--harness", harness(mode)});
    return run_tool(arguments);
  }

  TempTree tree_;
};

TEST_F(Demo, IsRightAboutATrainerThatTellsTheTruth) {
  const Output output = demo("honest", {"warmup", "leak-collator"});

  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, ContainsRegex("warm-up +warmup +warmup +- +- +right\n"));
  EXPECT_THAT(output.out, ContainsRegex("leak: collator +leak +leak +512 KiB / 5[0-2][0-9] KiB +"
                                        "scripted_harness.cpp:[0-9]+ / same +right\n"));
  EXPECT_THAT(output.out, HasSubstr("2 of 2 right"));
  EXPECT_THAT(output.out, Not(HasSubstr("\x1b")));
}

TEST_F(Demo, PrintsNothingButOneJsonObjectForPrograms) {
  const Output output = demo("lying", {"warmup", "--seed", "7", "--json"});

  EXPECT_EQ(output.exit_code, 1) << output.out << output.err;
  EXPECT_THAT(output.out,
              StartsWith(R"({"schema":1,"seed":7,"scenarios":[{"name":"warmup","ran":true,)"
                         R"("right":false,"problem":"No leak, warm-up)"));
  EXPECT_THAT(output.out, EndsWith("}]}\n"));
  EXPECT_THAT(output.err, HasSubstr("[1/1] warm-up"));
}

TEST_F(Demo, FindsTheTrainerBelowItsWrapper) {
  const Output output = demo("honest", {"wrapper"});

  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, ContainsRegex("wrapper trap +leak +leak +512 KiB / 5[0-2][0-9] KiB"));
}

TEST_F(Demo, SaysSoAndExitsWithOneWhenAVerdictIsNotTheTruth) {
  const Output output = demo("lying", {"warmup"});

  EXPECT_EQ(output.exit_code, 1) << output.out << output.err;
  EXPECT_THAT(output.out, ContainsRegex("warm-up +leak +warmup +- +- +WRONG\n"));
  EXPECT_THAT(output.out, HasSubstr("0 of 1 right"));
}

TEST_F(Demo, ShowsWhyAJobFailed) {
  const Output output = demo("failing", {"warmup"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.out, HasSubstr("FAILED"));
  EXPECT_THAT(output.out, HasSubstr("tidemark-harness: error: no such device"));
}

TEST_F(Demo, DoesNotTakeAnUnfinishedRunForATruth) {
  const Output output = demo("unfinished", {"warmup"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.out, HasSubstr("the job ended before its last step"));
}

TEST_F(Demo, KeepsRecordingTruthAndLogOnRequestOnly) {
  const std::string folder = tree_.path("kept/here");
  const Output output = demo("honest", {"warmup", "--keep", folder});
  ASSERT_EQ(output.exit_code, 0) << output.out << output.err;

  const Output again = run_tool({"track", folder + "/warmup.tidemark"});

  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.out, HasSubstr("No leak, warm-up"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/warmup.truth.json"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/warmup.log"));
  EXPECT_THAT(output.out, HasSubstr(folder));
}

TEST_F(Demo, LeavesNothingBehindWhenItIsStopped) {
  const std::string temporary = tree_.path("tmp");
  tree_.make_directory("tmp");
  Subprocess demo({"/usr/bin/env", "TMPDIR=" + temporary, tests::tool_path(), "demo", "--harness",
                   harness("honest"), "warmup", "leak-collator"});
  demo.read_until("leak: collator");

  demo.signal(SIGTERM);
  const int exit_code = demo.wait();

  EXPECT_EQ(exit_code, 3);
  EXPECT_THAT(demo.errors(), HasSubstr("stopped"));
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

TEST_F(Demo, RewritesItsLastLineOnATerminalOnly) {
  if (!tests::can_open_terminals()) {
    GTEST_SKIP() << "no terminals here (/dev/pts)";
  }
  Subprocess demo({tests::tool_path(), "demo", "--harness", harness("honest"), "warmup"},
                  Subprocess::Terminal::kControlling);

  const int exit_code = demo.wait();

  EXPECT_EQ(exit_code, 0) << demo.output();
  EXPECT_THAT(demo.output(), HasSubstr("\r\x1b[K  warm-up [####"));
}

TEST(DemoUsage, NamesTheScenariosThatThereAre) {
  const Output output = run_tool({"demo", "no-such"});

  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("leak-native"));
  EXPECT_EQ(run_tool({"demo", "--seed", "-1"}).exit_code, 2);
}

TEST(DemoUsage, SaysHowToGetTheHarness) {
  const TempTree tree;
  std::filesystem::copy_file(tests::tool_path(), tree.path("tidemark"));
  Subprocess lonely({tree.path("tidemark"), "demo"});

  EXPECT_EQ(lonely.wait(), 3);
  EXPECT_THAT(lonely.errors(), HasSubstr("hint: ./dev build"));
}

}  // namespace
}  // namespace tidemark
