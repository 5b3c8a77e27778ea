// SPDX-License-Identifier: Apache-2.0
// Steps in the output of a command, without --step-regex: for every command that starts one.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::TempTree;
using tests::tool_path;

constexpr const char* kJob =
    "for i in $(seq 12); do echo \"step $i/12 loss 0.5\"; sleep 0.05; done; sleep 0.3";
constexpr const char* kNote = "steps: from the log, lines such as 'step 3/12'";

class RecognisedStepsOf : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(RecognisedStepsOf, AreRecordedAndTold) {
  const TempTree folder;
  const std::string run = folder.path("run.tidemark");
  std::vector<std::string> arguments = GetParam();
  arguments.insert(arguments.end(), {"--interval", "100ms", "-o", run, "--", "sh", "-c", kJob});

  const Output output = run_tool(arguments);
  const Output exported = run_tool({"export", run, "--format", "jsonl"});

  EXPECT_THAT(output.err, HasSubstr(kNote));
  EXPECT_THAT(output.out, HasSubstr("step 12/12 loss 0.5\n")) << "the output stays the command's";
  EXPECT_THAT(exported.out, HasSubstr("\"step\":12"));
}

INSTANTIATE_TEST_SUITE_P(All, RecognisedStepsOf,
                         testing::Values(std::vector<std::string>{"monitor"},
                                         std::vector<std::string>{"track"},
                                         std::vector<std::string>{"profile"},
                                         std::vector<std::string>{"guard", "--limit", "8GiB"},
                                         std::vector<std::string>{"check", "--max-peak", "8GiB"}),
                         [](const auto& each) { return each.param.front(); });

TEST(RecognisedSteps, AreReadFromAFileThatTheOutputGoesTo) {
  const TempTree folder;
  const std::string log = folder.path("log");
  Subprocess shell({"sh", "-c",
                    tool_path() + " monitor --interval 100ms -- sh -c '" + kJob +
                        "; test -f /dev/stdout && echo in a file' > " + log + " 2>&1"});

  EXPECT_EQ(shell.wait(), 0);
  const auto text = read_file(log);
  ASSERT_TRUE(text) << text.error().what;
  EXPECT_THAT(*text, HasSubstr(kNote));
  EXPECT_THAT(*text, HasSubstr("in a file\n")) << "it does not pass through us";
}

TEST(RecognisedSteps, AreReadFromALogOfARunningProcess) {
  const TempTree folder;
  folder.write("log", "step 1/12\n");
  const Subprocess job(
      {"sh", "-c",
       "for i in $(seq 2000); do echo step $i/2000; sleep 0.01; done >> " + folder.path("log")});

  const Output output = run_tool({"monitor", "--pid", std::to_string(job.pid()), "--interval",
                                  "100ms", "--log-file", folder.path("log"), "--duration", "2s"});

  EXPECT_THAT(output.err, HasSubstr("steps: from the log, lines such as 'step "));
}

TEST(RecognisedSteps, CanBeSwitchedOff) {
  const Output output = run_tool({"monitor", "--step-regex", "off", "--", "sh", "-c", kJob});

  EXPECT_THAT(output.err, Not(HasSubstr("steps: from the log")));
  EXPECT_THAT(output.out, HasSubstr("step 12/12 loss 0.5\n"));
}

// As if we did not read it.
TEST(RecognisedSteps, AProcessThatIsLeftBehindCanGoOnWriting) {
  const TempTree folder;
  const std::string gate = folder.path("gate");
  const std::string ended = folder.path("ended");
  Subprocess shell({"sh", "-c",
                    tool_path() + " monitor --interval 100ms -- sh -c '(while [ ! -e " + gate +
                        " ]; do sleep 0.05; done; echo late) & echo early'; : > " + ended +
                        "; echo tool has ended; : > " + gate});

  EXPECT_THAT(shell.read_until("late"), HasSubstr("tool has ended\n")) << "it does not wait";
  EXPECT_EQ(shell.wait(), 0);
}

}  // namespace
}  // namespace tidemark
