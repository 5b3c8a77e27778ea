// SPDX-License-Identifier: Apache-2.0
// What the dashboard does to the terminal, and that it gives it back however it ends.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/dashboard/dashboard_session.h"
#include "tests/support/paths.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using tests::Subprocess;
using tests::TmuxSession;
using tests::TrainingTree;

class DashboardTerminal : public tests::DashboardSession {
 protected:
  // In a shell with job control, which has the terminal then.
  static void watch_and_stop(const TmuxSession& shell, const TrainingTree& tree) {
    shell.press({watch(tree), "Enter"});
    ASSERT_TRUE(shell.shows("compile_worker x20"));
    send(shell, SIGSTOP);
    ASSERT_TRUE(shell.shows("Stopped"));
  }
};

TEST_F(DashboardTerminal, SignalsToStopEndItAndGiveTheTerminalBack) {
  const TrainingTree tree;
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) {
    const TmuxSession session(watch(tree, "-o run.tidemark"), options());
    ASSERT_TRUE(session.shows("compile_worker x20"));

    send(session, number);

    EXPECT_TRUE(session.is_restored()) << "signal " << number;
    EXPECT_EQ(session.exit_code(), 0) << "signal " << number;
    EXPECT_TRUE(session.shows("recorded ")) << "signal " << number;
  }
}

TEST_F(DashboardTerminal, SignalsThatKillGiveTheTerminalBack) {
  const TrainingTree tree;
  for (const int number : {SIGSEGV, SIGABRT, SIGTRAP, SIGSYS, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU,
                           SIGPROF, SIGIO, SIGRTMIN + 3}) {
    const TmuxSession session(watch(tree, "-o run.tidemark"), options());
    ASSERT_TRUE(session.shows("compile_worker x20"));

    send(session, number);

    EXPECT_TRUE(session.is_restored()) << "signal " << number;
    EXPECT_EQ(session.exit_code(), 128 + number);
    EXPECT_THAT(exported(session.folder().path("run.tidemark")), HasSubstr("\"kind\":\"tick\""));
  }
}

// The whole foreground gets it: the shell must not end, and tells how the program did.
const std::string kShellStays = "trap : QUIT\n";

TEST_F(DashboardTerminal, ControlBackslashEndsIt) {
  const TrainingTree tree;
  const TmuxSession session(kShellStays + watch(tree), options());
  ASSERT_TRUE(session.shows("compile_worker x20"));

  session.send_bytes("1c");

  EXPECT_TRUE(session.is_restored());
  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.shows("summary: "));
}

TEST_F(DashboardTerminal, ControlBackslashEndsACommandAndPassesItsStatusOn) {
  const TmuxSession session(kShellStays + tool() + " monitor --interval 100ms -- sleep 60",
                            options());
  ASSERT_TRUE(session.shows("output of the command"));

  session.send_bytes("1c");

  EXPECT_EQ(session.exit_code(), 128 + SIGQUIT);
  EXPECT_TRUE(session.is_restored());
  EXPECT_TRUE(session.shows("summary: "));
}

// There is no stack left for a handler then.
TEST_F(DashboardTerminal, AnOverflowOfTheStackGivesItBack) {
  for (const std::string where : {"main", "thread"}) {
    const TmuxSession session("'" + tests::victim_path("terminal_probe") + "' " + where, options());

    EXPECT_EQ(session.exit_code(), 128 + SIGSEGV) << where;
    EXPECT_TRUE(session.is_restored()) << where;
  }
}

// A shell with job control takes the terminal while we are stopped, and gives it back by fg.
TEST_F(DashboardTerminal, ComesBackAfterAStop) {
  const TrainingTree tree;
  const TmuxSession session("bash --norc -i", options());
  watch_and_stop(session, tree);

  session.press({"clear", "Enter"});
  ASSERT_TRUE(session.shows_no_more("compile_worker x20"));
  session.press({"fg", "Enter"});

  EXPECT_TRUE(session.shows("compile_worker x20"));
  EXPECT_TRUE(session.shows("q quit")) << "the whole screen";
  session.press({"?"});
  EXPECT_TRUE(session.shows("─ help ─")) << "keys one by one";
  session.press({"q"});
  EXPECT_TRUE(session.shows("summary: "));
  session.press({"exit", "Enter"});
  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.is_restored());
}

TEST_F(DashboardTerminal, GivesTheTerminalToTheShellWhenToldToStop) {
  const TrainingTree tree;
  const TmuxSession session("bash --norc -i", options());
  for (const std::string& command :
       {watch(tree), tool() + " monitor --interval 200ms -- sleep 60"}) {
    session.press({"clear", "Enter", command, "Enter"});
    ASSERT_TRUE(session.shows("footprint of the tree"));

    send(session, SIGTSTP);
    ASSERT_TRUE(session.shows("Stopped"));

    EXPECT_TRUE(session.is_on_normal_screen()) << command;
    EXPECT_TRUE(session.shows("monitor --interval")) << "what was there before: " << command;
    session.press({"fg", "Enter"});
    EXPECT_TRUE(session.shows("footprint of the tree"));
    EXPECT_TRUE(session.shows("q quit")) << "the whole screen";
    session.press({"C-c"});
    EXPECT_TRUE(session.shows("summary: "));
  }
  session.press({"exit", "Enter"});
  EXPECT_TRUE(session.is_restored());
}

TEST_F(DashboardTerminal, LeavesTheTerminalAloneInTheBackground) {
  const TrainingTree tree;
  const TmuxSession session("bash --norc -i", options());
  watch_and_stop(session, tree);

  session.press({"bg; clear; sleep 2; echo still $((40 + 2))", "Enter"});

  EXPECT_TRUE(session.shows("still 42"));
  EXPECT_THAT(session.screen(), Not(Contains(HasSubstr("compile_worker"))));
  session.press({"fg", "Enter"});
  EXPECT_TRUE(session.shows("compile_worker x20"));
}

TEST_F(DashboardTerminal, EndsThoughNobodyReadsTheTerminal) {
  const TrainingTree tree;
  Subprocess process({"/usr/bin/env", "TERM=xterm", "LC_ALL=C.UTF-8", tests::tool_path(), "monitor",
                      "--interval", "50ms", "--no-keep", "--pid", std::to_string(tree.root())},
                     Subprocess::Terminal::kControlling);
  process.read_until("footprint of the tree");
  process.resize(100, 300);                              // large frames
  std::this_thread::sleep_for(std::chrono::seconds(4));  // its terminal is full

  // The second says that the summary need not be read either.
  process.signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  process.signal(SIGTERM);

  char state = '?';
  for (int i = 0; i < 100 && state != 'Z'; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::ifstream stat("/proc/" + std::to_string(process.pid()) + "/stat");
    std::string word;
    stat >> word >> word >> state;
  }
  EXPECT_EQ(state, 'Z');
}

// Every line that is drawn begins with a move to it; the one that is drawn most often counts
// frames.
std::size_t frames_in(const std::string& output) {
  std::size_t most = 0;
  for (int line = 1; line <= 24; ++line) {
    const std::string move = "\x1b[" + std::to_string(line) + ";1H";
    std::size_t count = 0;
    for (auto at = output.find(move); at != std::string::npos; at = output.find(move, at + 1)) {
      ++count;
    }
    most = std::max(most, count);
  }
  return most;
}

TEST_F(DashboardTerminal, IsDrawnAtMostTenTimesASecond) {
  const tests::TempTree folder;
  const auto begin = std::chrono::steady_clock::now();
  // Something new comes every 20 ms: a line of output.
  Subprocess process({"/usr/bin/env", "TERM=xterm", "LC_ALL=C.UTF-8", "TMPDIR=" + folder.path(),
                      tests::tool_path(), "monitor", "--interval", "50ms", "--no-keep", "--", "sh",
                      "-c", "i=0; while :; do i=$((i + 1)); echo line $i; sleep 0.02; done"},
                     Subprocess::Terminal::kControlling);
  process.read_until("footprint of the tree");

  process.read_for(std::chrono::seconds(5));

  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(static_cast<double>(frames_in(process.output())), 10.0 * seconds.count() + 1.0);
  EXPECT_GE(frames_in(process.output()), 5U) << "it is drawn at all";
  process.signal(SIGKILL);
}

// What may still change: a message goes after its eight seconds.
TEST_F(DashboardTerminal, NothingIsSentWhileItIsPaused) {
  const TrainingTree tree;
  Subprocess process({"/usr/bin/env", "TERM=xterm", "LC_ALL=C.UTF-8", tests::tool_path(), "monitor",
                      "--interval", "50ms", "--no-keep", "--pid", std::to_string(tree.root())},
                     Subprocess::Terminal::kControlling);
  process.read_until("footprint of the tree");
  process.send(" ");
  process.read_until("PAUSED");

  bool is_quiet = false;
  for (int i = 0; i < 10 && !is_quiet; ++i) {
    const std::size_t before = process.output().size();
    process.read_for(std::chrono::seconds(3));
    is_quiet = process.output().size() == before;
  }

  EXPECT_TRUE(is_quiet) << process.output().substr(process.output().size() - 200);
  const std::size_t before = process.output().size();
  process.send(" ");
  process.read_for(std::chrono::seconds(2));
  EXPECT_GT(process.output().size(), before) << "it goes on";
}

}  // namespace
}  // namespace tidemark
