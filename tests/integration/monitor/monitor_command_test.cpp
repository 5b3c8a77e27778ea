// SPDX-License-Identifier: Apache-2.0
// `tidemark monitor` as a user runs it, on a tree that looks like a training job.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using tests::json_lines;
using tests::of_kind;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::tool_path;
using tests::TrainingTree;

std::uint64_t rss_bytes_from_proc(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      std::uint64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

TEST(MonitorCommand, AgreesWithProcAndListsEveryWorkerWithItsRole) {
  const TrainingTree tree;

  const Output output = run_tool({"monitor", "--pid", std::to_string(tree.root()), "--json",
                                  "--duration", "1s", "--interval", "250ms"});

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto ticks = of_kind(json_lines(output.out), "tick");
  ASSERT_GE(ticks.size(), 4U);
  const json& last = ticks.back();
  std::uint64_t rss = 0;
  for (const pid_t pid : tree.pids()) {
    rss += rss_bytes_from_proc(pid);
  }
  EXPECT_NEAR(last.at("tree").at("rss_bytes").get<double>(), static_cast<double>(rss),
              0.01 * static_cast<double>(rss));
  std::map<std::string, std::set<pid_t>> by_role;
  for (const json& process : last.at("processes")) {
    by_role[process.at("role")].insert(process.at("pid").get<pid_t>());
  }
  EXPECT_EQ(by_role["compile_worker"].size(), 20U);
  EXPECT_EQ(by_role["dataloader_worker"].size(), 4U);
  EXPECT_EQ(by_role["trainer"], std::set<pid_t>{tree.truth().at("trainer").get<pid_t>()});
  EXPECT_EQ(by_role["wrapper"], std::set<pid_t>{tree.root()});
  EXPECT_EQ(last.at("roles").at("compile_worker").at("count"), 20);
}

TEST(MonitorCommand, CountsSharedPagesOnceInTheFootprint) {
  const TrainingTree tree({"--shared-mb", "50"});

  const Output output =
      run_tool({"monitor", "--pid", std::to_string(tree.root()), "--json", "--duration", "300ms"});

  const auto ticks = of_kind(json_lines(output.out), "tick");
  ASSERT_FALSE(ticks.empty());
  const double footprint = ticks.back().at("tree").at("footprint_bytes").get<double>();
  const double mib = 1 << 20;
  // trainer 60 + pool 50 shared + 20 x 2 + 4 x 4 of the DataLoader workers, and small change
  EXPECT_NEAR(footprint / mib, 60 + 50 + 40 + 16, 25);
  EXPECT_GT(ticks.back().at("tree").at("rss_bytes").get<double>() / mib, 1000);
}

TEST(MonitorCommand, PlainLinesNameTheTrainerWithItsPidAndEndWithASummary) {
  const TrainingTree tree;
  const std::string trainer = std::to_string(tree.truth().at("trainer").get<pid_t>());

  const Output output =
      run_tool({"monitor", "--pid", std::to_string(tree.root()), "--duration", "300ms"});

  EXPECT_EQ(output.exit_code, 0);
  EXPECT_THAT(output.out, HasSubstr("trainer[" + trainer + "]"));
  EXPECT_THAT(output.out, HasSubstr("compile_worker x20"));
  EXPECT_THAT(output.out, HasSubstr("dataloader_worker x4"));
  EXPECT_THAT(output.out, HasSubstr("summary:"));
  EXPECT_THAT(output.out, Not(HasSubstr("\x1b"))) << "no colours in a pipe";
}

TEST(MonitorCommand, EndsWithTheTarget) {
  const Subprocess target({"/bin/sleep", "1"});

  const Output output = run_tool({"monitor", "--pid", std::to_string(target.pid()), "--json",
                                  "--interval", "100ms", "--duration", "20s"});

  EXPECT_EQ(output.exit_code, 0);
  const auto lines = json_lines(output.out);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back().at("kind"), "summary");
  EXPECT_LT(lines.back().at("t_s").get<double>(), 15.0);
}

TEST(MonitorCommand, CtrlCEndsItWithTheSummary) {
  const Subprocess target({"/bin/sleep", "30"});
  Subprocess tool(
      {tool_path(), "monitor", "--pid", std::to_string(target.pid()), "--interval", "100ms"});
  tool.read_until("since last");

  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 0);
  EXPECT_THAT(tool.output(), HasSubstr("summary:"));
}

TEST(MonitorCommand, PassesOnTheCommandsOutputAndStatus) {
  const Output output = run_tool({"monitor", "--interval", "50ms", "--", "/bin/sh", "-c",
                                  "echo to-stdout; echo to-stderr >&2; exit 7"});

  EXPECT_EQ(output.exit_code, 7);
  EXPECT_EQ(output.out, "to-stdout\n") << "stdout is the command's alone";
  EXPECT_THAT(output.err, HasSubstr("to-stderr"));
  EXPECT_THAT(output.err, HasSubstr("summary:"));
}

TEST(MonitorCommand, WithJsonStdoutIsPureJson) {
  const Output output =
      run_tool({"monitor", "--json", "--interval", "50ms", "--", "/bin/sh", "-c", "echo noise"});

  EXPECT_EQ(output.exit_code, 0);
  EXPECT_FALSE(json_lines(output.out).empty());
  EXPECT_THAT(output.err, HasSubstr("noise"));
}

TEST(MonitorCommand, ASignalThatKillsTheCommandShowsInTheStatus) {
  EXPECT_EQ(run_tool({"monitor", "--", "/bin/sh", "-c", "kill -9 $$"}).exit_code, 128 + 9);
}

TEST(MonitorCommand, ReadsStepsFromTheCommandsOutput) {
  const Output output =
      run_tool({"monitor", "--json", "--interval", "100ms", "--step-regex", "Step +(\\d+)", "--",
                "/bin/sh", "-c", "for i in 1 2 3 4 5; do echo Step $i loss=1; sleep 0.1; done"});

  EXPECT_EQ(output.exit_code, 0);
  const auto ticks = of_kind(json_lines(output.out), "tick");
  ASSERT_FALSE(ticks.empty());
  EXPECT_EQ(ticks.back().at("step"), 5);
  EXPECT_THAT(output.err, HasSubstr("Step 3 loss=1"));
}

TEST(MonitorCommand, StepsThatWereLostAreInTheSummary) {
  const Output output =
      run_tool({"monitor", "--json", "--interval", "20s", "--step-regex", "Step (\\d+)", "--",
                "/bin/sh", "-c", "sleep 0.5; seq -f 'Step %.0f' 1 100000"});

  EXPECT_EQ(output.exit_code, 0);
  const auto summaries = of_kind(json_lines(output.out), "summary");
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_GT(summaries[0].at("losses").value("steps_lost", 0), 0) << "65,536 wait for a look";
}

TEST(MonitorCommand, ABadStepPatternIsRefusedWithItsColumn) {
  const Output output = run_tool({"monitor", "--step-regex", "Step (\\d+", "--", "/bin/true"});

  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("--step-regex: column 10: missing closing parenthesis"));
}

TEST(MonitorCommand, ALineThatTheStepPatternGivesUpIsCountedAndTold) {
  const Output output = run_tool({"monitor", "--json", "--interval", "100ms", "--step-regex",
                                  "(?:a+)+ Step (\\d+)", "--", "/bin/sh", "-c",
                                  "echo 'a Step 1'; printf '%04000d Step x\\n' 0 | tr 0 a; "
                                  "echo 'a Step 3'; sleep 0.5"});

  EXPECT_EQ(output.exit_code, 0);
  const auto lines = json_lines(output.out);
  EXPECT_EQ(of_kind(lines, "tick").back().at("step"), 3);
  EXPECT_EQ(of_kind(lines, "summary")[0].at("losses").value("step_lines_lost", 0), 1);
  EXPECT_THAT(output.err, HasSubstr("--step-regex would take too long on a line"));
}

TEST(MonitorCommand, RecordsARunThatCanBeExported) {
  const tests::TempTree folder;
  const std::string file = folder.path("run.tidemark");
  const Output recorded =
      run_tool({"monitor", "--interval", "50ms", "-o", file, "--", "/bin/sh", "-c", "sleep 0.5"});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;

  const Output exported = run_tool({"export", file, "--format", "jsonl"});

  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_GE(of_kind(json_lines(exported.out), "tick").size(), 5U);
  const Output again = run_tool({"monitor", "-o", file, "--", "/bin/true"});
  EXPECT_EQ(again.exit_code, 3) << "an existing recording is not overwritten";
  EXPECT_THAT(again.err, HasSubstr("--force"));
}

TEST(MonitorCommand, WarnsOfFastGrowth) {
  const TrainingTree tree({"--grow-mb-per-s", "100"});

  const Output output =
      run_tool({"monitor", "--pid", std::to_string(tree.root()), "--json", "--interval", "100ms",
                "--duration", "2s", "--warn-growth", "50MB/1s"});

  bool warned = false;
  for (const json& event : of_kind(json_lines(output.out), "event")) {
    warned = warned || event.at("event") == "warn_growth";
  }
  EXPECT_TRUE(warned);
}

TEST(MonitorCommand, AHostileNameIsHarmlessInEveryOutput) {
  Subprocess target({"/bin/bash", "-c", "exec -a $'evil\\e[2J\\xff\"\\n' sleep 20"});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until bash has become sleep

  const std::string pid = std::to_string(target.pid());
  const Output plain = run_tool({"monitor", "--pid", pid, "--duration", "100ms"});
  const Output as_json = run_tool({"monitor", "--pid", pid, "--duration", "100ms", "--json"});

  EXPECT_THAT(plain.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(plain.out, HasSubstr("evil\\x1b[2J"));
  EXPECT_FALSE(json_lines(as_json.out).empty()) << "valid JSON and UTF-8";
}

// A tool whose stdout or stderr is full from the start: head fills the pipe, nobody reads it.
std::vector<std::string> with_full_pipe(const std::string& redirection,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {"/bin/sh", "-c",
                                   "head -c 65536 /dev/zero " + redirection + "; exec \"$@\"", "sh",
                                   tool_path()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

template <typename Condition>
bool comes_true(Condition&& condition) {
  for (int n = 0; n < 500; ++n) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

bool is_zombie(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  return text.find(") Z ") != std::string::npos;
}

TEST(MonitorCommand, PassesSignalsOnWhileNobodyReadsItsLines) {
  const tests::TempTree folder;
  const std::string ready = folder.path("ready");
  const std::string stopped = folder.path("stopped");
  Subprocess tool(with_full_pipe(">&2", {"monitor", "--interval", "50ms", "--", "/bin/sh", "-c",
                                         "trap ': > " + stopped + "; exit 5' TERM; : > " + ready +
                                             "; while :; do sleep 0.05; done"}));
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(ready); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // lines that do not go anywhere

  tool.signal(SIGTERM);

  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(stopped); }));
  EXPECT_EQ(tool.wait(), 5);
  EXPECT_THAT(tool.errors(), HasSubstr("summary:")) << "the reader came back";
}

TEST(MonitorCommand, ASignalEndsTheWaitForAReaderThatStalls) {
  const Subprocess target({"/bin/sleep", "30"});
  Subprocess tool(
      with_full_pipe("", {"monitor", "--pid", std::to_string(target.pid()), "--interval", "50ms"}));
  const pid_t pid = tool.pid();

  const bool ended = comes_true([&] {
    tool.signal(SIGTERM);  // one ends the run, another the wait
    return is_zombie(pid);
  });

  EXPECT_TRUE(ended);
}

TEST(MonitorCommand, LinesThatNobodyReadAreInTheSummary) {
  const tests::TempTree folder;
  const TrainingTree tree({"--workers", "200", "--worker-mb", "0.1"});
  Subprocess tool({tool_path(), "monitor", "--pid", std::to_string(tree.root()), "--json", "--pss",
                   "off", "--interval", "50ms", "-o", folder.path("run")});
  // As JSON a sample takes five times as much: more than the 1 MiB that waits for a reader.
  ASSERT_TRUE(comes_true([&] {
    std::error_code none_yet;
    const auto bytes = std::filesystem::file_size(folder.path("run-wal"), none_yet);
    return !none_yet && bytes > (1U << 20U);
  }));

  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 0);
  const auto lines = json_lines(tool.output());
  EXPECT_EQ(lines.back().at("kind"), "summary");
  const auto written = of_kind(lines, "tick").size();
  const auto dropped = lines.back().at("losses").value("lines_dropped", std::size_t{0});
  EXPECT_GT(dropped, 0U);
  EXPECT_GE(written + dropped, lines.back().at("summary").at("ticks").get<std::size_t>());
}

TEST(MonitorCommand, OutputThatCannotBeWrittenIsExitThree) {
  const Subprocess target({"/bin/sleep", "30"});
  Subprocess tool({"/bin/sh", "-c", "exec \"$@\" > /dev/full", "sh", tool_path(), "monitor",
                   "--pid", std::to_string(target.pid())});

  EXPECT_EQ(tool.wait(), 3) << "and it does not go on for nobody";
  EXPECT_THAT(tool.errors(), HasSubstr("No space left on device"));
}

TEST(MonitorCommand, ARecordingThatFailsIsToldOnceAndExitThree) {
  const tests::TempTree folder;
  const Subprocess target({"/bin/sleep", "30"});
  Subprocess tool({tool_path(), "monitor", "--pid", std::to_string(target.pid()), "--interval",
                   "50ms", "--duration", "1500ms", "-o", folder.path("run")});
  tool.read_until("since last");

  folder.remove("run");

  EXPECT_EQ(tool.wait(), 3);
  const std::string& errors = tool.errors();
  const std::size_t first = errors.find("the recording is incomplete");
  ASSERT_NE(first, std::string::npos) << errors;
  EXPECT_EQ(errors.find("the recording is incomplete", first + 1), std::string::npos) << errors;
  EXPECT_THAT(errors, Not(HasSubstr("recorded")));
}

TEST(MonitorCommand, RelaysAndWatchesProcessesThatOutliveTheCommand) {
  const Output output =
      run_tool({"monitor", "--interval", "50ms", "--step-regex", "Step (\\d+)", "--", "/bin/sh",
                "-c", "(sleep 1; echo Step 9) & echo Step 1; exit 6"});

  EXPECT_EQ(output.exit_code, 6);
  EXPECT_EQ(output.out, "Step 1\nStep 9\n");
  EXPECT_THAT(output.err, HasSubstr("the command has ended; "));
  EXPECT_THAT(output.err, HasSubstr("step 9"));
}

TEST(MonitorCommand, CtrlCLeavesProcessesThatOutliveTheCommand) {
  Subprocess tool({tool_path(), "monitor", "--interval", "50ms", "--step-regex", "Step (\\d+)",
                   "--", "/bin/sh", "-c", "sleep 3 & echo Step 1; exit 6"});
  tool.read_until("Step 1");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // until the command has ended

  tool.signal(SIGTERM);

  EXPECT_EQ(tool.wait(), 6);
  EXPECT_THAT(tool.errors(), HasSubstr("summary: 0.")) << "well before the three seconds";
}

TEST(MonitorCommand, SaysHowTheCommandEnded) {
  const auto last_exit = [](const std::string& script) {
    const Output output =
        run_tool({"monitor", "--json", "--interval", "50ms", "--", "/bin/sh", "-c", script});
    std::string detail;
    for (const json& event : of_kind(json_lines(output.out), "event")) {
      if (event.at("event") == "exit" && event.at("comm") == "sh") {
        detail = event.at("detail");
      }
    }
    return detail;
  };

  EXPECT_THAT(last_exit("sleep 0.3; kill -9 $$"), EndsWith(", killed by SIGKILL"));
  EXPECT_THAT(last_exit("sleep 0.3; exit 7"), EndsWith(", exit status 7"));
  EXPECT_THAT(last_exit("sleep 0.3; exit 0"), EndsWith("sh"));
}

TEST(MonitorCommand, ProblemsWithTheTargetAreExitThree) {
  const Output nobody = run_tool({"monitor", "--pid", "4194305"});
  EXPECT_EQ(nobody.exit_code, 3);
  EXPECT_THAT(nobody.err, HasSubstr("there is no process 4194305"));

  std::promise<pid_t> id;
  std::promise<void> end;
  std::thread thread([&] {
    id.set_value(static_cast<pid_t>(::syscall(SYS_gettid)));
    end.get_future().wait();
  });
  const pid_t tid = id.get_future().get();
  const Output of_thread = run_tool({"monitor", "--pid", std::to_string(tid)});
  end.set_value();
  thread.join();
  EXPECT_EQ(of_thread.exit_code, 3);
  EXPECT_THAT(of_thread.err, HasSubstr(fmt::format("{} is a thread of process {}: use --pid {}",
                                                   tid, ::getpid(), ::getpid())));

  const Output no_command = run_tool({"monitor", "--", "/no/such/program"});
  EXPECT_EQ(no_command.exit_code, 3);
  EXPECT_THAT(no_command.err, HasSubstr("/no/such/program"));
}

TEST(MonitorCommand, AUsageErrorSaysWhereTheHelpIs) {
  EXPECT_THAT(run_tool({"zebra"}).err, HasSubstr("see tidemark --help"));
  EXPECT_THAT(run_tool({"find", "--", "x"}).err, HasSubstr("see tidemark find --help"));
}

TEST(MonitorCommand, WrongUsageIsExitTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"monitor"},
                                             {"monitor", "--pid", "1", "--system"},
                                             {"monitor", "--pid", "0"},
                                             {"monitor", "--pid", "1", "--interval", "10ms"},
                                             {"monitor", "--pid", "1", "--interval", "soon"},
                                             {"monitor", "--pid", "1", "--step-regex", "x"},
                                             {"monitor", "--step-regex", "(", "--", "/bin/true"},
                                             {"monitor", "--"},
                                             {"monitor", "--no-such-option"},
                                             {"no-such-command"}}) {
    const Output output = run_tool(arguments);
    EXPECT_EQ(output.exit_code, 2) << testing::PrintToString(arguments) << output.err;
    EXPECT_THAT(output.err, HasSubstr("tidemark: error: "));
  }
}

TEST(MonitorCommand, HelpShowsAnExample) {
  const Output output = run_tool({"monitor", "--help"});

  EXPECT_EQ(output.exit_code, 0);
  EXPECT_THAT(output.out, HasSubstr("tidemark monitor --find-training"));
}

}  // namespace
}  // namespace tidemark
