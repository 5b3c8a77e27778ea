// SPDX-License-Identifier: Apache-2.0
// LaunchedCommand and SignalInbox, in a program of their own (launch_probe) with real commands.
#include "live/launch/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "common/io.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"

namespace tidemark::live {
namespace {

using testing::HasSubstr;
using tests::Subprocess;
using Terminal = Subprocess::Terminal;

const std::string kPrograms = TIDEMARK_BINARY_DIR "/tests/programs/";

class LaunchTest : public testing::Test {
 protected:
  std::vector<std::string> probe(const std::vector<std::string>& command,
                                 const std::vector<std::string>& options = {}) const {
    std::vector<std::string> argv = {kPrograms + "launch_probe", "--report", report_};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.emplace_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  std::string report() const { return read_file(report_).has_value() ? *read_file(report_) : ""; }

  static std::string output_without_us(std::vector<std::string> command,
                                       const std::vector<std::string>& before = {}) {
    command.insert(command.begin(), before.begin(), before.end());
    Subprocess process(command);
    EXPECT_EQ(process.wait(), 0);
    return process.output();
  }
  std::string output_with_us(const std::vector<std::string>& command,
                             const std::vector<std::string>& before = {}) const {
    return output_without_us(probe(command), before);
  }

  // The totals that the victim prints once everything sent before has been passed on.
  static std::string totals(Subprocess& process) {
    process.read_until("got USR1");
    process.send("\n");
    return process.read_until("USR2=");
  }

  tests::TempTree directory_;
  const std::string report_ = directory_.path("report");
  const std::vector<std::string> counter_ = {kPrograms + "signal_counter"};
};

TEST_F(LaunchTest, ReturnsTheStatusOfTheCommand) {
  Subprocess process(probe({"sh", "-c", "exit 42"}));

  EXPECT_EQ(process.wait(), 42);
}

TEST_F(LaunchTest, ReturnsTheSignalThatKilledTheCommand) {
  Subprocess process(probe({"sh", "-c", "kill -KILL $$"}));

  EXPECT_EQ(process.wait(), 128 + SIGKILL);
}

// A thread of ours stops it to read its memory, and waits for each stop.
TEST_F(LaunchTest, LeavesTheStopsOfATracedCommandToTheThreadThatTraces) {
  Subprocess process(probe({"sh", "-c", "sleep 2; exit 5"}, {"--trace"}));

  EXPECT_EQ(process.wait(), 5);

  EXPECT_THAT(report(), HasSubstr("exit 5\n"));
  EXPECT_THAT(report(), HasSubstr("stops 20\n"));
}

TEST_F(LaunchTest, SaysWhyACommandCannotBeStarted) {
  Subprocess missing(probe({"/no/such/program"}));
  EXPECT_EQ(missing.wait(), 3);
  EXPECT_EQ(missing.errors(),
            "launch_probe: cannot start /no/such/program: No such file or directory\n");

  directory_.write("data", "text");
  Subprocess not_executable(probe({directory_.path("data")}));
  EXPECT_EQ(not_executable.wait(), 3);
  EXPECT_THAT(not_executable.errors(), HasSubstr("Permission denied"));
}

TEST_F(LaunchTest, RunsAScriptWithoutAnInterpreterLine) {
  directory_.write("script", "echo \"$1\"\nexit 5\n");
  ::chmod(directory_.path("script").c_str(), 0755);
  Subprocess process(probe({directory_.path("script"), "two words"}));

  EXPECT_EQ(process.wait(), 5);
  EXPECT_EQ(process.output(), "two words\n");
}

TEST_F(LaunchTest, LeavesTheDescriptorsAlone) {
  Subprocess process(probe({"sh", "-c", "cat; echo err >&2"}));
  process.send("through stdin\n");
  process.close_input();

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output(), "through stdin\n");
  EXPECT_EQ(process.errors(), "err\n");
}

TEST_F(LaunchTest, GivesTheCommandNoDescriptorsOfOurs) {
  EXPECT_EQ(output_with_us({"ls", "/proc/self/fd"}), output_without_us({"ls", "/proc/self/fd"}));
}

TEST_F(LaunchTest, SendsStdoutToStderrOnRequest) {
  Subprocess process(probe({"echo", "text"}, {"--stdout-to-stderr"}));

  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.output(), "");
  EXPECT_EQ(process.errors(), "text\n");
}

// The mask called `name` in what `grep ^Sig /proc/self/status` printed, without 32 and 33: those
// two are the C library's own, and posix_spawn always leaves them ignored.
std::uint64_t signal_mask(const std::string& status, const std::string& name) {
  const std::size_t at = status.find(name + ":\t");
  return at == std::string::npos
             ? UINT64_MAX
             : std::stoull(status.substr(at + name.size() + 2, 16), nullptr, 16) & ~0x180000000ULL;
}

TEST_F(LaunchTest, LeavesTheSignalsOfTheCommandAsTheyWere) {
  const std::vector<std::string> show = {"grep", "^Sig", "/proc/self/status"};
  const std::vector<std::string> ignoring = {"sh", "-c", "trap '' HUP PIPE INT; exec \"$@\"", "sh"};

  const std::string plain = output_with_us(show);
  EXPECT_EQ(signal_mask(plain, "SigBlk"), 0U);
  EXPECT_EQ(signal_mask(plain, "SigIgn"), signal_mask(output_without_us(show), "SigIgn"));
  const std::string with_ignored = output_with_us(show, ignoring);
  EXPECT_EQ(signal_mask(with_ignored, "SigBlk"), 0U);
  EXPECT_EQ(signal_mask(with_ignored, "SigIgn"),
            signal_mask(output_without_us(show, ignoring), "SigIgn"));
}

TEST_F(LaunchTest, PassesOnOnceWhatIsSentToUsAlone) {
  Subprocess process(probe(counter_));
  process.read_until("ready");

  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2}) {
    process.signal(number);
    process.read_until(std::string("got ") + sigabbrev_np(number));
  }
  process.signal(SIGUSR1);

  EXPECT_THAT(totals(process), HasSubstr("totals INT=1 TERM=1 HUP=1 QUIT=1 USR1=1 USR2=1"));
  EXPECT_EQ(process.wait(), 7);
}

TEST_F(LaunchTest, DoesNotRepeatTheCtrlCOfTheTerminal) {
  if (!tests::can_open_terminals()) {
    GTEST_SKIP() << "no terminals here (/dev/pts)";
  }
  Subprocess process(probe(counter_), Terminal::kControlling);
  process.read_until("ready");

  process.send("\x03");
  process.read_until("got INT");
  process.send("\x1c");
  process.read_until("got QUIT");
  process.signal(SIGUSR1);

  EXPECT_THAT(totals(process), HasSubstr("totals INT=1 TERM=0 HUP=0 QUIT=1 USR1=1"));
  EXPECT_EQ(process.wait(), 7);
}

TEST_F(LaunchTest, PassesOnTheHangUpOfTheTerminalThatOnlyTheSessionLeaderGets) {
  if (!tests::can_open_terminals()) {
    GTEST_SKIP() << "no terminals here (/dev/pts)";
  }
  Subprocess process(probe({"sh", "-c", "echo ready; exec sleep 20"}), Terminal::kControlling);
  process.read_until("ready");

  process.close_input();
  process.close_output();

  EXPECT_EQ(process.wait(), 128 + SIGHUP);
}

TEST_F(LaunchTest, GoesOnWhenTheCommandIsStoppedAndContinued) {
  Subprocess process(probe(counter_));
  process.read_until("ready");

  process.signal(SIGTSTP);
  process.signal(SIGCONT);
  process.signal(SIGUSR1);

  EXPECT_THAT(totals(process), HasSubstr("USR1=1"));
  EXPECT_EQ(process.wait(), 7);
}

TEST_F(LaunchTest, ReapsOrphansAndDoesNotTakeThemForTheCommand) {
  // The command starts a grandchild that ends with 9 once its parent has left it; the command
  // itself goes on until the grandchild is nowhere in the process table.
  const char* const script =
      "orphan=$(sh -c 'sh -c \"read x < \\\"$0\\\"; exit 9\" \"$0\" > /dev/null & echo $!' \"$0\");"
      "echo > \"$0\"; while [ -e /proc/$orphan ]; do :; done; exit 4";
  ::mkfifo(directory_.path("fifo").c_str(), 0600);
  Subprocess process(probe({"sh", "-c", script, directory_.path("fifo")}));

  EXPECT_EQ(process.wait(), 4);
  EXPECT_EQ(report(), "exit 4\nreaped orphan\nreaped command\n");
}

TEST_F(LaunchTest, TheCommandOutlivesUs) {
  Subprocess process(probe(counter_));
  process.read_until("ready");

  process.signal(SIGKILL);
  process.send("\n");

  EXPECT_THAT(process.read_until("totals"), HasSubstr("totals"));
  EXPECT_EQ(process.wait(), 128 + SIGKILL);
}

}  // namespace
}  // namespace tidemark::live
