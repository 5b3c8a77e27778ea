// SPDX-License-Identifier: Apache-2.0
// OutputRelay between real commands and pipes, files and terminals.
#include "live/launch/output_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "common/io.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::live {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using tests::Subprocess;
using Terminal = Subprocess::Terminal;

const std::string kProbe = TIDEMARK_BINARY_DIR "/tests/programs/launch_probe";

class OutputRelayTest : public testing::Test {
 protected:
  std::vector<std::string> relayed(const std::string& script,
                                   const std::vector<std::string>& options = {}) const {
    std::vector<std::string> argv = {kProbe, "--report", report_, "--regex", R"(step (\d+))"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.insert(argv.end(), {"--", "sh", "-c", script});
    return argv;
  }
  std::string report() const {
    const auto text = read_file(report_);
    return text ? *text : text.error().what;
  }

  tests::TempTree directory_;
  const std::string report_ = directory_.path("report");
};

TEST_F(OutputRelayTest, FindsStepsInWhatItPassesOn) {
  Subprocess process(relayed("printf 'step 1\\n\\rstep 2/9\\rstep 3/9'"));

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output(), "step 1\n\rstep 2/9\rstep 3/9");
  EXPECT_THAT(report(), EndsWith("step 1\nstep 2\nstep 3\n"));
}

TEST_F(OutputRelayTest, KeepsTheStreamsApart) {
  Subprocess process(relayed("echo out; echo err step 7 >&2"));

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output(), "out\n");
  EXPECT_EQ(process.errors(), "err step 7\n");
  EXPECT_THAT(report(), EndsWith("step 7\n"));
}

TEST_F(OutputRelayTest, SendsStdoutToStderrOnRequest) {
  Subprocess process(relayed("echo step 1; echo step 2 >&2", {"--stdout-to-stderr"}));

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output(), "");
  EXPECT_EQ(process.errors(), "step 1\nstep 2\n");
}

TEST_F(OutputRelayTest, KeepsTheOrderOfStreamsThatEndAtTheSamePlace) {
  std::string expected;
  for (int n = 0; n < 100; ++n) {
    expected += "out\nerr\n";
  }
  auto argv = relayed("for n in $(seq 100); do echo out; echo err >&2; done");
  argv.insert(argv.begin(), {"sh", "-c", "exec \"$@\" 2>&1", "sh"});
  Subprocess process(argv);

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output(), expected);
}

TEST_F(OutputRelayTest, PassesAFloodOnUnchanged) {
  // 100 MB of lines and of binary, summed before and after.
  const std::string source = "{ seq 1 9000000; head -c 30000000 /dev/urandom; }";
  auto argv = relayed(source + " | tee \"$F\"");
  argv.insert(argv.begin(), {"sh", "-c",
                             "F=" + directory_.path("data") +
                                 "; export F; \"$@\" | cksum; cksum < \"$F\"; "
                                 "wc -c < \"$F\"",
                             "sh"});
  Subprocess process(argv);

  ASSERT_EQ(process.wait(), 0);
  const auto first_line_end = process.output().find('\n');
  const std::string arrived = process.output().substr(0, first_line_end);
  const std::string rest = process.output().substr(first_line_end + 1);
  EXPECT_EQ(arrived, rest.substr(0, rest.find('\n')));
  EXPECT_GT(std::stol(rest.substr(rest.find('\n') + 1)), 100'000'000 - 5'000'000);
}

TEST_F(OutputRelayTest, GivesTheCommandATerminalOfTheSameSize) {
  if (!tests::can_open_terminals()) {
    GTEST_SKIP() << "no terminals here (/dev/pts)";
  }
  Subprocess process(relayed("test -t 1 && test -t 2 && stty size <&1"), Terminal::kControlling);

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output(), "24 80\r\n") << "one \\r, of the real terminal";
}

TEST_F(OutputRelayTest, LeavesTheInputOfTheTerminalToTheCommand) {
  if (!tests::can_open_terminals()) {
    GTEST_SKIP() << "no terminals here (/dev/pts)";
  }
  Subprocess process(relayed("test -t 0 && read line && echo \"got $line\""),
                     Terminal::kControlling);

  process.send("words\n");

  EXPECT_THAT(process.read_until("got words"), HasSubstr("got words"));
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(OutputRelayTest, TellsTheCommandThatTheWindowChanged) {
  if (!tests::can_open_terminals()) {
    GTEST_SKIP() << "no terminals here (/dev/pts)";
  }
  Subprocess process(relayed("trap 'stty size <&1' WINCH; echo ready; "
                             "while :; do sleep 0.02; done"),
                     Terminal::kControlling);
  process.read_until("ready");

  process.resize(50, 132);

  EXPECT_THAT(process.read_until("50 132"), HasSubstr("50 132"));
  process.send("\x03");
  EXPECT_EQ(process.wait(), 128 + SIGINT);
}

TEST_F(OutputRelayTest, UsesAPipeWhereThereIsNoTerminal) {
  Subprocess process(relayed("test -p /dev/stdout && test -p /dev/stderr && echo pipes"));

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output(), "pipes\n");
}

TEST_F(OutputRelayTest, TheCommandGetsSigpipeWhenNobodyReads) {
  Subprocess process(relayed("trap '' USR1; echo ready; exec yes"));
  process.read_until("ready");

  process.close_output();

  EXPECT_EQ(process.wait(), 128 + SIGPIPE);
}

TEST_F(OutputRelayTest, AFullDiskDoesNotEndTheCommand) {
  auto argv = relayed("for n in 1 2 3; do echo step $n; sleep 0.05; done; exit 4");
  argv.insert(argv.begin(), {"sh", "-c", "exec \"$@\" > /dev/full", "sh"});
  Subprocess process(argv);

  EXPECT_EQ(process.wait(), 4);
  EXPECT_THAT(report(), EndsWith("step 1\nstep 2\nstep 3\n"));
}

TEST_F(OutputRelayTest, ASlowReaderSlowsTheCommandDown) {
  const std::string done = directory_.path("done");
  Subprocess process(relayed("yes | head -c 10000000; : > " + done));

  // 64 KiB read, and as much in each of two pipes and in the relay: it cannot have finished.
  process.read_until("y\n");
  EXPECT_FALSE(std::filesystem::exists(done));

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output().size(), 10'000'000U);
  EXPECT_TRUE(std::filesystem::exists(done));
}

TEST_F(OutputRelayTest, DoesNotWaitForProcessesThatOutliveTheCommand) {
  Subprocess process(relayed("echo step 1; (trap '' TERM; read x) & exit 3"));

  EXPECT_EQ(process.wait(), 3);
  EXPECT_EQ(process.output(), "step 1\n");
}

TEST_F(OutputRelayTest, TheCommandAndItsOutputOutliveUs) {
  Subprocess process(relayed("echo ready; read line; echo out $line; echo err >&2; echo last"));
  process.read_until("ready");

  process.signal(SIGKILL);
  process.send("of it\n");

  EXPECT_THAT(process.read_until("last"), HasSubstr("out of it\n"));
  EXPECT_EQ(process.wait(), 128 + SIGKILL);
}

TEST_F(OutputRelayTest, RefusesABadPatternBeforeItStartsAnything) {
  Subprocess process({kProbe, "--regex", "(", "--", "echo", "started"});

  EXPECT_EQ(process.wait(), 3);
  EXPECT_EQ(process.output(), "");
}

}  // namespace
}  // namespace tidemark::live
