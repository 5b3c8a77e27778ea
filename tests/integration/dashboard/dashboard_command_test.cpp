// SPDX-License-Identifier: Apache-2.0
// The dashboard as a user sees it: the real program on a real terminal (tmux).
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/dashboard/dashboard_session.h"
#include "tests/integration/monitor/command_output.h"

namespace tidemark {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using tests::Subprocess;
using tests::TmuxSession;
using tests::TrainingTree;

using DashboardCommand = tests::DashboardSession;

TEST_F(DashboardCommand, ShowsTheTreeAndLeavesTheTerminalAsItWas) {
  const TrainingTree tree;
  const TmuxSession session(watch(tree), options());

  EXPECT_TRUE(session.shows("watching trainer, pid " +
                            std::to_string(tree.truth().at("trainer").get<pid_t>())));
  EXPECT_TRUE(session.shows("compile_worker x20"));
  EXPECT_TRUE(session.shows("footprint of the tree"));
  session.press({"q"});

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.is_restored());
  EXPECT_TRUE(session.shows("summary: ")) << "what stays in the scroll-back";
}

TEST_F(DashboardCommand, EveryKeyDoesWhatItSays) {
  const TrainingTree tree;
  const TmuxSession session(watch(tree, "-o run.tidemark"), options());
  ASSERT_TRUE(session.shows("compile_worker x20"));

  session.press({"?"});
  EXPECT_TRUE(session.shows("─ help ─"));
  session.press({"x"});
  EXPECT_TRUE(session.shows_no_more("─ help ─"));
  session.press({"w"});
  EXPECT_TRUE(session.shows("─ why ─"));
  session.press({"x"});
  EXPECT_TRUE(session.shows_no_more("─ why ─"));
  session.press({"a"});
  EXPECT_TRUE(session.shows("the whole run, from zero"));
  session.press({"a", "a", "Left", "Left"});
  EXPECT_TRUE(session.shows("  tree ")) << "the figures at the cursor";
  session.press({"Escape"});
  EXPECT_TRUE(session.shows_no_more("  tree "));
  session.press({"z"});
  EXPECT_TRUE(session.shows("last 1 min"));
  session.press({"s"});
  EXPECT_TRUE(session.shows("by rss"));
  session.press({"/", "d", "a", "t", "a", "l"});
  EXPECT_TRUE(session.shows("filter: datal_"));
  EXPECT_TRUE(session.shows_no_more("compile_worker x20"));
  session.press({"Escape"});
  EXPECT_TRUE(session.shows("compile_worker x20"));
  session.press({"G", "g", "j", "k", "/", "c", "o", "m", "p", "i", "l", "e", "_", "Enter"});
  session.press({"Home", "Escape"});
  EXPECT_TRUE(session.shows("▸ compile_worker x20"));
  session.press({"Enter"});
  EXPECT_TRUE(session.shows("▾ compile_worker x20"));
  session.press({"Enter", "m"});
  EXPECT_TRUE(session.shows("marked"));
  session.press({"e"});
  EXPECT_TRUE(session.shows("this screen is in tidemark-screen-"));
  session.press({" "});
  EXPECT_TRUE(session.shows("PAUSED"));
  session.press({" "});
  EXPECT_TRUE(session.shows_no_more("PAUSED"));
  session.press({"Tab", "Up", "C-l", "q"});

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_THAT(exported(session.folder().path("run.tidemark")), HasSubstr("\"event\":\"mark\""));
  std::size_t screens = 0;
  for (const auto& entry : std::filesystem::directory_iterator(session.folder().path())) {
    screens += entry.path().filename().string().starts_with("tidemark-screen-") ? 1U : 0U;
  }
  EXPECT_EQ(screens, 1U);
}

TEST_F(DashboardCommand, ShowsTheMachine) {
  const TrainingTree tree;
  const TmuxSession session(watch(tree), options());

  EXPECT_TRUE(session.shows("machine "));
  EXPECT_TRUE(session.shows("available "));
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return stat.at(stat.rfind(')') + 2);
}

TEST_F(DashboardCommand, SendsASignalToTheSelectedProcessWhenThatIsConfirmed) {
  Subprocess job({"/bin/sleep", "1000"});
  const std::string name = " to trainer " + std::to_string(job.pid());
  const TmuxSession session(
      tool() + " monitor --interval 200ms -o run.tidemark --pid " + std::to_string(job.pid()),
      options());
  ASSERT_TRUE(session.shows("footprint of the tree"));

  session.press({"K"});
  EXPECT_TRUE(session.shows("Which signal" + name));
  session.press({"s"});
  EXPECT_TRUE(session.shows("Send STOP" + name));
  session.press({"n"});
  EXPECT_TRUE(session.shows_no_more("Send STOP"));
  EXPECT_NE(state_of(job.pid()), 'T');

  session.press({"K", "s", "y"});
  EXPECT_TRUE(session.shows("sent STOP" + name));
  EXPECT_EQ(state_of(job.pid()), 'T');
  EXPECT_TRUE(session.shows("process stopped"));
  session.press({"K", "c", "y"});
  EXPECT_TRUE(session.shows("sent CONT" + name));
  EXPECT_NE(state_of(job.pid()), 'T');
  session.press({"q"});

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_THAT(exported(session.folder().path("run.tidemark")), HasSubstr("sent STOP" + name))
      << "what was done to the job belongs to its run";
}

TEST_F(DashboardCommand, ClosedItPrintsTheVerdictAndKeepsTheRun) {
  const Subprocess growing({tests::victim_path("leak_by_line"), "--count", "100000"});
  const TmuxSession session(tool() + " monitor --warmup 1s --interval 100ms --pid " +
                                std::to_string(growing.pid()) + " && " + tool() +
                                " track --last --warmup 1s --json > judged.json; echo judged: $?",
                            options());
  ASSERT_TRUE(session.shows(" LEAK "));
  session.press({"q"});

  EXPECT_TRUE(session.shows("judged: 1"));
  const auto lines = session.screen();
  EXPECT_THAT(lines, Contains(HasSubstr("leak"))) << "the sentence";
  EXPECT_THAT(lines, Contains(StartsWith("next: tidemark ")));
  EXPECT_THAT(lines, Contains(HasSubstr("tidemark track --last judges it again")));
  EXPECT_THAT(lines, Contains(HasSubstr("the last run is " + session.folder().path("cache"))));
}

TEST_F(DashboardCommand, KeepsNoRunWithAFileOfItsOwnOrWithoutLeave) {
  const TrainingTree tree;
  const TmuxSession session(
      watch(tree, "-o run.tidemark --duration 1s") + "; " + watch(tree, "--no-keep --duration 1s"),
      options());

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(session.folder().path("cache/tidemark/runs")));
}

TEST_F(DashboardCommand, ARunThatCannotBeKeptIsWatchedAllTheSame) {
  const TrainingTree tree;
  const TmuxSession session(
      "XDG_CACHE_HOME=/nonexistent/cache " + watch(tree, "--plain --duration 1s"), options());

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.shows("note: this run is not kept for tidemark track --last"));
}

TEST_F(DashboardCommand, TheMouseSelectsAndOpens) {
  const TrainingTree tree;
  const TmuxSession session(watch(tree), options());
  ASSERT_TRUE(session.shows("▸ compile_worker x20"));
  const auto lines = session.screen();
  std::size_t row = 1;
  while (row <= lines.size() && lines[row - 1].find("▸ compile_worker x20") == std::string::npos) {
    ++row;
  }

  // Two presses on that line, as SGR reports them: ESC [ < 0 ; 5 ; ROW M.
  std::string press = "1b 5b 3c 30 3b 35 3b";
  for (const char digit : std::to_string(row)) {
    press += " 3" + std::string(1, digit);
  }
  session.send_bytes(press + " 4d " + press + " 4d");

  EXPECT_TRUE(session.shows("▾ compile_worker x20"));
}

TEST_F(DashboardCommand, FollowsTheSizeOfTheTerminal) {
  const TrainingTree tree;
  const TmuxSession session(watch(tree), options());
  ASSERT_TRUE(session.shows("compile_worker x20"));

  session.resize(300, 100);
  EXPECT_TRUE(session.shows("q quit"));
  EXPECT_TRUE(session.shows("PSS"));
  session.resize(40, 12);
  EXPECT_TRUE(session.shows_no_more("RSS"));
  EXPECT_TRUE(session.shows("FOOTPRINT"));
  session.resize(30, 8);
  EXPECT_TRUE(session.shows_no_more("help")) << "too small: one plain line";
  session.resize(80, 24);
  EXPECT_TRUE(session.shows("a axis"));
  const auto lines = session.screen();

  EXPECT_THAT(lines, SizeIs(24));
  EXPECT_THAT(lines.back(), StartsWith("? help  q quit"));
}

TEST_F(DashboardCommand, AKilledOneLeavesAReadableRunFile) {
  const TrainingTree tree;
  const TmuxSession session(watch(tree, "-o run.tidemark"), options());
  ASSERT_TRUE(session.shows("compile_worker x20"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // past the first commit

  ::kill(session.pid_of("tidemark"), SIGKILL);

  EXPECT_EQ(session.exit_code(), 128 + SIGKILL);
  EXPECT_THAT(exported(session.folder().path("run.tidemark")), HasSubstr("\"kind\":\"tick\""));
}

TEST_F(DashboardCommand, StaysWhenTheTargetHasEnded) {
  const TrainingTree tree;
  const TmuxSession session(tool() + " monitor --interval 3s --pid " + std::to_string(tree.root()),
                            options());
  ASSERT_TRUE(session.shows("compile_worker x20"));
  ::kill(tree.root(), SIGTERM);  // all of them long before the next look: none sees half a tree

  EXPECT_TRUE(session.shows("ENDED"));
  EXPECT_TRUE(session.shows("footprint of the tree"));
  EXPECT_TRUE(session.shows("until it ended")) << "who it was about";
  EXPECT_TRUE(session.shows("compile_worker x20"));
  session.press({"q"});

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.is_restored());
}

// The last sample comes while it is paused: no other asks for a verdict after it.
TEST_F(DashboardCommand, PausedAtTheEndIsBroughtUpToDateLater) {
  const Subprocess growing({tests::victim_path("leak_by_line"), "--count", "300"});
  const TmuxSession session(
      tool() + " monitor --warmup 1s --interval 100ms --pid " + std::to_string(growing.pid()),
      options());
  ASSERT_TRUE(session.shows("footprint of the tree"));
  session.press({" "});

  ASSERT_TRUE(session.shows("ENDED PAUSED"));
  EXPECT_THAT(session.screen(), Not(Contains(HasSubstr("LEAK"))));
  session.press({" "});

  EXPECT_TRUE(session.shows_no_more("PAUSED"));
  EXPECT_TRUE(session.shows("LEAK"));
}

TEST_F(DashboardCommand, KeepsTheOutputOfACommandOffTheScreenAndPassesItsStatusOn) {
  const TmuxSession session(tool() +
                                " monitor --interval 100ms -o run.tidemark -- sh -c "
                                "'echo to stdout; echo to stderr >&2; sleep 3; exit 7'",
                            options());

  EXPECT_TRUE(session.shows("output of the command"));
  EXPECT_TRUE(session.shows("to stderr"));

  EXPECT_EQ(session.exit_code(), 7);
  EXPECT_TRUE(session.is_restored());
  EXPECT_TRUE(session.shows("the output of the command is in run.tidemark.log"));
  std::ifstream log(session.folder().path("run.tidemark.log"));
  std::string first;
  std::getline(log, first);
  EXPECT_EQ(first, "to stdout");
}

TEST_F(DashboardCommand, LeavesNoFileOfACommandThatPrintsNothing) {
  const TmuxSession session(tool() + " monitor -o run.tidemark -- sleep 1", options());

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(session.folder().path("run.tidemark.log")));
}

TEST_F(DashboardCommand, LeavesNothingOfACommandThatCannotBeStarted) {
  const TmuxSession session(tool() + " monitor -- /nonexistent", options());

  EXPECT_EQ(session.exit_code(), 3);
  EXPECT_THAT(session.screen(), Not(Contains(HasSubstr("the output of the command is in"))));
  for (const auto& entry : std::filesystem::directory_iterator(session.folder().path())) {
    EXPECT_NE(entry.path().extension(), ".log") << entry.path();
  }
}

TEST_F(DashboardCommand, ACommandGoesOnWhenTheScreenIsClosed) {
  const TmuxSession session(
      tool() + " monitor --interval 100ms -- sh -c 'sleep 4; touch done; exit 3'", options());
  ASSERT_TRUE(session.shows("output of the command"));

  session.press({"q"});

  EXPECT_TRUE(session.shows("the command runs on"));
  EXPECT_EQ(session.exit_code(), 3);
  EXPECT_TRUE(std::filesystem::exists(session.folder().path("done")));
}

// The trainer comes later, with a limit that its wrapper has set for it.
TEST_F(DashboardCommand, KnowsTheLimitOfATrainerThatComesLater) {
  const TmuxSession session(tool() +
                                " monitor --interval 100ms -- sh -c 'sleep 2; ulimit -v 1500000; " +
                                tests::victim_path("leak_by_line") + " --count 1000; true'",
                            options());
  ASSERT_TRUE(session.shows("output of the command"));

  EXPECT_TRUE(session.shows("limit 1.43 GiB"));
}

TEST_F(DashboardCommand, ShowsTheJobsOfAJobServerInTheTree) {
  const tests::TempTree folder;
  folder.write(
      "status.json",
      R"({"schema":1,"jobs":[{"id":"1","state":"done","arguments":["warmup","--mb","100"],)"
      R"("step":60,"memory":{"before_bytes":4194304,"peak_bytes":123731968,)"
      R"("after_bytes":18874368}}]})");
  // A process with the command line of a server.
  Subprocess server({"/bin/sh", "-c", "sleep 60; true", "tidemark-harness", "serve-jobs",
                     "--status", folder.path("status.json")});
  const TmuxSession session(
      tool() + " monitor --interval 200ms --pid " + std::to_string(server.pid()), options());

  EXPECT_TRUE(session.shows("── jobs ─"));
  EXPECT_TRUE(session.shows("+14.0 MiB kept  peak  118 MiB  step 60     1 warmup --mb 100"));
  folder.write("status.json", R"({"schema":1,"jobs":[]})");
  EXPECT_TRUE(session.shows_no_more("── jobs ─")) << "nothing to show takes no space";
}

TEST_F(DashboardCommand, ReplaysARecording) {
  const TrainingTree tree;
  const TmuxSession session(tool() + " monitor --plain --interval 100ms --duration 2s --pid " +
                                std::to_string(tree.root()) + " -o run.tidemark > /dev/null; " +
                                tool() + " monitor --replay run.tidemark --speed 5x",
                            options());

  EXPECT_TRUE(session.shows("REPLAY 5x"));
  EXPECT_TRUE(session.shows("compile_worker x20"));
  EXPECT_TRUE(session.shows("ENDED"));
  session.press({"q"});

  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.is_restored());
}

TEST_F(DashboardCommand, AReplayStandsStillWhileItIsPaused) {
  const TrainingTree tree;
  const TmuxSession session(tool() + " monitor --plain --interval 100ms --duration 2s --pid " +
                                std::to_string(tree.root()) + " -o run.tidemark > /dev/null; " +
                                tool() + " monitor --replay run.tidemark --speed 1x",
                            options());
  ASSERT_TRUE(session.shows("REPLAY 1x"));

  session.press({"Space"});
  ASSERT_TRUE(session.shows("STOPPED"));
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // longer than the recording

  EXPECT_THAT(session.screen(), Not(Contains(HasSubstr("ENDED"))));
  session.press({"Space"});
  EXPECT_TRUE(session.shows("ENDED"));
}

// More samples than are kept as they were: only a run file can be asked for the others.
TEST_F(DashboardCommand, AReplayOfStepsGoesBackWithoutARunFile) {
  const TmuxSession session("(echo step,rss_mb; seq -f '%.0f,100' 10000) > log.csv; " + tool() +
                                " monitor --replay log.csv --speed 1000000x",
                            options());
  ASSERT_TRUE(session.shows("ENDED"));
  EXPECT_TRUE(session.shows("rss of the tree, the whole run"));

  session.press({"z"});
  ASSERT_TRUE(session.shows("last 60 steps"));
  session.press({"Tab", "Home"});

  EXPECT_TRUE(session.shows("60 steps until step 60"));
  EXPECT_THAT(session.screen(), Not(Contains(HasSubstr("log.csv"))));
  session.press({"q"});
  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_TRUE(session.shows("summary: 10000 steps in 10000 samples"));
}

TEST(Replay, PrintsLinesWhereThereIsNoTerminal) {
  const TrainingTree tree;
  const tests::TempTree folder;
  const std::string run = folder.path("run.tidemark");
  ASSERT_EQ(tests::run_tool({"monitor", "--pid", std::to_string(tree.root()), "--duration", "1s",
                             "--interval", "200ms", "-o", run})
                .exit_code,
            0);

  const tests::Output output = tests::run_tool({"monitor", "--replay", run, "--speed", "100x"});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("00:00:01"));
  EXPECT_THAT(output.out, HasSubstr("compile_worker x20"));
  EXPECT_THAT(output.out, HasSubstr("summary: "));
}

TEST(Replay, SaysThatLinesHaveNoVerdict) {
  const tests::TempTree folder;
  folder.write("log.csv", "step,rss_mb\n1,100\n");
  for (const std::string option : {"--metric=rss", "--warmup=1s", "--min-leak=1MiB/h"}) {
    EXPECT_THAT(tests::run_tool({"monitor", "--replay", folder.path("log.csv"), option}).err,
                HasSubstr("are for the verdict of the dashboard"))
        << option;
  }
  EXPECT_EQ(tests::run_tool({"monitor", "--replay", folder.path("log.csv")}).err, "");
}

TEST(Replay, SaysWhatIsWrongWithItsUse) {
  const auto code = [](const std::vector<std::string>& arguments) {
    return tests::run_tool(arguments).exit_code;
  };

  EXPECT_EQ(code({"monitor", "--replay", "x.tidemark", "--pid", "1"}), 2);
  EXPECT_EQ(code({"monitor", "--replay", "x.tidemark", "-o", "y.tidemark"}), 2);
  EXPECT_EQ(code({"monitor", "--replay", "x.tidemark", "--speed", "0"}), 2);
  EXPECT_EQ(code({"monitor", "--speed", "2x", "--pid", "1"}), 2);
  EXPECT_EQ(code({"monitor", "--replay", "/nowhere.tidemark"}), 3);
}

TEST_F(DashboardCommand, InAPlainLocaleIsAsciiAndWithNoColorHasNone) {
  const TrainingTree tree;
  const TmuxSession session(watch(tree), {100, 30, {"LC_ALL=C", "NO_COLOR=1"}});
  ASSERT_TRUE(session.shows("+ compile_worker x20"));

  for (const std::string& line : session.screen(/*with_colors=*/true)) {
    for (const char c : line) {
      EXPECT_TRUE(c == '\x1b' || (c >= ' ' && c <= '~')) << line;
    }
    for (const char* color : {"\x1b[31m", "\x1b[33m", "\x1b[34m", "\x1b[36m", "\x1b[96m"}) {
      EXPECT_THAT(line, Not(HasSubstr(color)));
    }
  }
}

TEST_F(DashboardCommand, PlainAndJsonPrintLinesOnATerminalToo) {
  const TrainingTree tree;
  const TmuxSession session(watch(tree, "--plain --duration 1s"), options());

  EXPECT_TRUE(session.shows("FOOTPRINT        RSS  COMMAND"));
  EXPECT_EQ(session.exit_code(), 0);
}

}  // namespace
}  // namespace tidemark
