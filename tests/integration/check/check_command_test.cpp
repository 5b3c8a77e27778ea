// SPDX-License-Identifier: Apache-2.0
// `tidemark check -- COMMAND` as a CI job runs it: budgets, reports, exit codes.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "tests/integration/check/checked_victim.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using tests::budget;
using tests::check_of;
using tests::checked;
using tests::leaking;
using tests::Output;
using tests::remove_segments_in;
using tests::run_check;
using tests::steady;
using tests::Subprocess;
using tests::TempTree;
using tests::tool_path;
using tests::victim_path;

TEST(CheckCommand, PassesASteadyJobAndSaysWhatItCouldHaveSeen) {
  const Output output = run_check({"--max-growth", "100KiB/step", "--warmup", "20steps"}, steady());

  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr("PASS leak_linear: within 1 budget; a leak above "));
  EXPECT_THAT(output.out, testing::StartsWith("{\"victim\""));  // stdout is the command's
}

TEST(CheckCommand, SaysWhichSettingsWereOfNoUse) {
  const Output output =
      run_check({"--max-peak", "1GiB", "--tolerance", "7%", "--commit", "abc"}, {"/bin/true"});

  EXPECT_THAT(output.err, HasSubstr("--tolerance is for --baseline"));
  EXPECT_THAT(output.err, HasSubstr("--commit is for --history"));
}

TEST(CheckCommand, FailsALeakThatExceedsItsBudget) {
  const json answer = checked({"--max-growth", "100KiB/step", "--warmup", "20steps"}, leaking());

  EXPECT_EQ(answer.at("exit_code"), 1) << answer.dump(1);
  const json& row = budget(answer, "max_growth");
  EXPECT_EQ(row.at("state"), "exceeded");
  EXPECT_EQ(row.at("unit"), "bytes_per_step");
  EXPECT_NEAR(row.at("measured").get<double>(), 512 * 1024, 50 * 1024);
  EXPECT_GT(row.at("low").get<double>(), 100 * 1024);
}

TEST(CheckCommand, PassesALeakThatIsWithinItsBudget) {
  const json answer = checked({"--max-growth", "2MiB/step", "--warmup", "20steps"}, leaking());

  EXPECT_EQ(answer.at("exit_code"), 0) << answer.dump(1);
  EXPECT_NEAR(budget(answer, "max_growth").at("measured").get<double>(), 512 * 1024, 50 * 1024);
}

TEST(CheckCommand, DoesNotWaitForALeftoverThatHasTheOutputOpen) {
  const auto begin = std::chrono::steady_clock::now();
  const Output output = run_check({"--max-processes", "9", "--step-regex", "Step ([0-9]+)"},
                                  {"/bin/sh", "-c", "sleep 60 & echo Step 1; sleep 0.5"});

  EXPECT_THAT(output.out, HasSubstr("Step 1\n"));
  EXPECT_THAT(output.err, HasSubstr("1 of its processes still has its output open"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

TEST(CheckCommand, CountsPerMinuteAsWell) {
  EXPECT_EQ(checked({"--max-growth", "60MB/min", "--warmup", "20steps"}, leaking()).at("exit_code"),
            1);
}

TEST(CheckCommand, CannotTellFromAutomaticWarmUpOfAShortRun) {
  const Output output = run_check({"--max-growth", "100KiB/step"}, leaking());

  EXPECT_EQ(output.exit_code, 4) << output.err;
  EXPECT_THAT(output.err, HasSubstr("CANNOT TELL leak_linear: max_growth: it still grows"));
  EXPECT_THAT(output.err, HasSubstr("it needs about"));
  EXPECT_THAT(output.err, HasSubstr("--warmup 200steps"));
}

TEST(CheckCommand, CannotTellGrowthPerStepWhereThereAreNoSteps) {
  const Output output =
      run_check({"--max-growth", "1MiB/step", "--warmup", "1s"},
                {victim_path("leak_linear"), "--flat-steps", "10", "--count", "100"});

  EXPECT_EQ(output.exit_code, 4) << output.err;
  EXPECT_THAT(output.err, HasSubstr("--step-regex"));
}

TEST(CheckCommand, NoGrowthIsWithinABudgetPerStepWithoutSteps) {
  const Output output = run_check({"--max-growth", "1MiB/step", "--warmup", "1s"},
                                  {victim_path("leak_linear"), "--leak-mb", "0", "--count", "60"});

  EXPECT_EQ(output.exit_code, 0) << output.err;
}

TEST(CheckCommand, RecognisesStepsInTheOutputAndSaysSo) {
  const Output output =
      run_check({"--max-growth", "1MiB/step", "--warmup", "20steps"},
                {"sh", "-c", "for i in $(seq 80); do echo step $i/80 loss 0.5; sleep 0.03; done"});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr("steps: from the log, lines such as 'step 3/80'"));
  EXPECT_THAT(output.err, HasSubstr(" since step "));
  EXPECT_THAT(output.err, HasSubstr(" would have been seen"));
  EXPECT_THAT(output.out, HasSubstr("step 80/80 loss 0.5\n"));
}

TEST(CheckCommand, IsNamedForTheScriptThatAShellRuns) {
  EXPECT_THAT(
      run_check({"--max-peak", "1GiB"}, {"sh", "-c", "A=1 sleep 0.3 && sleep 0.4 | cat"}).err,
      HasSubstr("sleep: within"));
  EXPECT_THAT(
      run_check({"--max-peak", "1GiB"}, {"python3", "-c", "import time; time.sleep(0.3)"}).err,
      HasSubstr("python3: within"));
}

TEST(CheckCommand, ReadsStepsFromTheOutput) {
  const json answer =
      checked({"--max-growth", "1MiB/step", "--warmup", "10steps", "--step-regex", "Step (\\d+)"},
              {"sh", "-c", "for i in $(seq 60); do echo Step $i; sleep 0.03; done"});

  EXPECT_EQ(answer.at("exit_code"), 0) << answer.dump(1);
  EXPECT_EQ(budget(answer, "max_growth").at("unit"), "bytes_per_step");
}

TEST(CheckCommand, HasBudgetsForPeakPlateauAndProcesses) {
  const json kept = checked({"--max-peak", "200MiB", "--max-plateau", "150MiB", "--max-processes",
                             "1", "--max-growth", "off"},
                            steady());
  const json broken =
      checked({"--max-peak", "50MiB", "--max-plateau", "40MiB", "--max-processes", "1",
               "--max-growth", "off"},
              {"sh", "-c", victim_path("leak_linear") + " --leak-mb 0 --count 60; :"});

  EXPECT_EQ(kept.at("exit_code"), 0) << kept.dump(1);
  EXPECT_NEAR(budget(kept, "max_plateau").at("measured").get<double>(), 65 << 20, 6 << 20);
  EXPECT_EQ(broken.at("exit_code"), 1);
  EXPECT_EQ(budget(broken, "max_peak").at("state"), "exceeded");
  EXPECT_EQ(budget(broken, "max_plateau").at("state"), "exceeded");
  EXPECT_EQ(budget(broken, "max_processes").at("measured"), 2);
}

TEST(CheckCommand, CannotTellAboutAGpuThatIsNotThere) {
  const json answer = checked({"--gpu-max-peak", "1GiB"}, {"sleep", "1.5"});

  EXPECT_EQ(budget(answer, "gpu_max_peak").at("doubt"), "no_sample");
  EXPECT_EQ(answer.at("exit_code"), 4);
}

TEST(CheckCommand, FindsWhatIsLeftRunning) {
  const json answer = checked({"--max-retained", "8MiB"},
                              {victim_path("leaves_behind"), "--stray-mb", "32", "--stray-s", "8"});

  EXPECT_EQ(answer.at("exit_code"), 1) << answer.dump(1);
  // And the 16 MiB that its parent had.
  EXPECT_NEAR(budget(answer, "max_retained").at("measured").get<double>(), 48 << 20, 3 << 20);
  const json& left = check_of(answer).at("run").at("left_behind");
  ASSERT_EQ(left.at("processes").size(), 1U);
  EXPECT_EQ(left.at("processes").at(0).at("comm"), "leaves_behind");
}

TEST(CheckCommand, GivesWhoIsAboutToEndAMoment) {
  EXPECT_EQ(checked({"--max-retained", "0"},
                    {victim_path("leaves_behind"), "--stray-mb", "32", "--stray-s", "0.6"})
                .at("exit_code"),
            0);
}

TEST(CheckCommand, FindsSegmentsOfSharedMemoryThatNobodyHolds) {
  const Output output = run_check({"--max-retained", "1MiB", "--json", "-"},
                                  {victim_path("leaves_behind"), "--shm-mb", "8"});
  remove_segments_in(output.err);

  const json answer = json::parse(output.out);
  EXPECT_EQ(answer.at("exit_code"), 1) << answer.dump(1);
  EXPECT_EQ(budget(answer, "max_retained").at("measured"), 8 << 20);
  EXPECT_THAT(output.err, HasSubstr("/dev/shm/torch_"));
}

TEST(CheckCommand, ComparesWhatEachJobLeavesBehind) {
  const Output output = run_check({"--jobs", "3", "--json", "-", "--max-growth", "off"},
                                  {victim_path("leaves_behind"), "--shm-mb", "4", "--ms", "400"});
  remove_segments_in(output.err);
  const json clean = checked({"--jobs", "2", "--max-growth", "off"},
                             {victim_path("leaves_behind"), "--ms", "400"});

  const json answer = json::parse(output.out);
  EXPECT_EQ(answer.at("exit_code"), 1) << answer.dump(1);
  EXPECT_EQ(check_of(answer).at("left_by_job_bytes"), json({4 << 20, 8 << 20, 12 << 20}));
  EXPECT_EQ(budget(answer, "max_job_growth").at("measured"), 4 << 20);
  EXPECT_EQ(clean.at("exit_code"), 0) << clean.dump(1);
}

TEST(CheckCommand, RepeatsOnlyAsLongAsItFails) {
  const json passing = checked({"--repeat", "3", "--max-peak", "1GiB"}, {"sleep", "1.5"});
  const json failing = checked({"--repeat", "2", "--max-peak", "1KiB"}, {"sleep", "1.5"});

  EXPECT_EQ(check_of(passing).at("runs"), 1);
  EXPECT_EQ(check_of(failing).at("runs"), 2);
  EXPECT_EQ(failing.at("exit_code"), 1);
}

TEST(CheckCommand, FailsOnlyOnGrowthInEveryRepeat) {
  const TempTree folder;
  // Leaks in its first run only.
  const std::string script = fmt::format(
      "if [ -e {0} ]; then mb=0; else mb=0.5; : > {0}; fi; exec {1} --leak-mb $mb "
      "--flat-steps 0 --count 80 --step-ms 20 --steps",
      folder.path("ran"), victim_path("leak_linear"));

  const json answer =
      checked({"--repeat", "3", "--max-growth", "100KiB/step", "--warmup", "10steps"},
              {"sh", "-c", script});

  EXPECT_EQ(answer.at("exit_code"), 0) << answer.dump(1);
  EXPECT_EQ(check_of(answer).at("runs"), 2);
}

TEST(CheckCommand, EndsStraysBeforeItRepeats) {
  const Output output =
      run_check({"--repeat", "2", "--max-retained", "1MiB", "--json", "-"},
                {victim_path("leaves_behind"), "--stray-mb", "16", "--stray-s", "30"});

  const json answer = json::parse(output.out);
  const json& left = check_of(answer).at("run").at("left_behind");
  ASSERT_EQ(left.at("processes").size(), 1U) << left.dump(1);  // that of the last run alone
  ::kill(left.at("processes").at(0).at("pid").get<pid_t>(), SIGKILL);
}

TEST(CheckCommand, ExitsWithThreeWhenTheCommandFailsAndSaysItsStatus) {
  const Output output = run_check({"--max-peak", "1KiB"}, {"sh", "-c", "sleep 1.5; exit 7"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("ERROR sleep: the command failed with status 7; max_peak: "));
}

TEST(CheckCommand, ExitsWithThreeWhenThereIsNoSuchCommand) {
  const Output output = run_check({}, {"/no/such/command"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("cannot start /no/such/command"));
  EXPECT_THAT(output.err, HasSubstr("ERROR command: the command could not be started"));
}

TEST(CheckCommand, EndsATreeThatIgnoresSigtermWhenItsTimeIsOver) {
  const Output output =
      run_check({"--timeout", "1s"}, {victim_path("leaves_behind"), "--stubborn", "3"});

  EXPECT_EQ(output.exit_code, 3) << output.err;
  EXPECT_THAT(output.err, HasSubstr("the command did not end within 1.0 s"));
  EXPECT_THAT(output.err, HasSubstr("it is killed"));
  for (std::size_t at = 0; (at = output.out.find("pid ", at)) != std::string::npos; at += 4) {
    const pid_t pid = std::stoi(output.out.substr(at + 4));
    EXPECT_NE(::kill(pid, 0), 0) << "process " << pid << " is left";
  }
}

TEST(CheckCommand, NeitherCountsNorEndsWhatTheShellHadStartedBefore) {
  const tests::TempTree dir;
  tests::Subprocess process(tests::after_a_neighbour(
      dir.path("neighbour"),
      {tests::tool_path(), "check", "--interval", "50ms", "--timeout", "1s", "--repeat", "2", "--",
       victim_path("leaves_behind"), "--stubborn", "3"}));
  process.close_input();

  EXPECT_EQ(process.wait(), 3) << process.errors();

  EXPECT_THAT(process.errors(), HasSubstr("it is killed"));
  EXPECT_TRUE(tests::end_neighbour(dir.path("neighbour"))) << process.errors();
}

TEST(CheckCommand, EndsWhatRunsForEverAndJudgesIt) {
  const json answer = checked({"--duration", "2s", "--warmup", "500ms", "--max-growth", "1MB/min"},
                              {"sleep", "60"});

  EXPECT_EQ(answer.at("exit_code"), 0) << answer.dump(1);
  EXPECT_LT(check_of(answer).at("run").at("seconds").get<double>(), 30.0);
}

TEST(CheckCommand, DoesNotJudgeWhatTheCommandDoesWhenItIsToldToEnd) {
  const std::string script = fmt::format(
      "trap '{} --base-mb 300 --leak-mb 0 --count 20; exit 0' TERM; "
      "while :; do sleep 0.1; done",
      victim_path("leak_linear"));

  const json answer = checked({"--duration", "1s", "--max-peak", "100MiB"}, {"sh", "-c", script});

  EXPECT_EQ(answer.at("exit_code"), 0) << answer.dump(1);
}

TEST(CheckCommand, ShowsNoSecretsOfTheCommand) {
  const Output output =
      run_check({"--max-peak", "1GiB"}, {"sh", "-c", "sleep 0.3", "x", "--token", "hunter2"});

  EXPECT_THAT(output.err, Not(HasSubstr("hunter2")));
  EXPECT_THAT(output.err, HasSubstr("--token ***"));
}

TEST(CheckCommand, HasNoAnswerWhenTheUserStopsIt) {
  Subprocess tool({tool_path(), "check", "--interval", "50ms", "--max-peak", "1GiB", "--", "sh",
                   "-c", "echo ready; exec sleep 60"});
  tool.close_input();
  tool.read_until("ready");
  ::usleep(500'000);

  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 4) << tool.errors();
  EXPECT_THAT(tool.errors(), HasSubstr("stopped before its end"));
}

TEST(CheckCommand, WritesItsReports) {
  const TempTree folder;
  const Output output = run_check(
      {"--max-peak", "1KiB", "--junit", folder.path("j.xml"), "--markdown", folder.path("c.md"),
       "--json", folder.path("r.json"), "-o", folder.path("r.tidemark")},
      {"sleep", "1.5"});

  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(tests::content_of(folder.path("j.xml")), HasSubstr("<failure type=\"budget\""));
  EXPECT_THAT(tests::content_of(folder.path("c.md")), HasSubstr("### FAIL: sleep"));
  EXPECT_EQ(json::parse(tests::content_of(folder.path("r.json"))).at("result"), "fail");
  EXPECT_EQ(::access(folder.path("r.tidemark").c_str(), R_OK), 0);
}

TEST(CheckCommand, WritesItsReportsAlsoWhenNobodyReadsItsWords) {
  const TempTree dir;
  Subprocess shell({"/bin/sh", "-c",
                    tool_path() + " check --interval 50ms --junit \"$0\" -- sleep 0.3 2>&1 | true",
                    dir.path("junit.xml")});
  shell.close_input();

  shell.wait();

  EXPECT_TRUE(read_file(dir.path("junit.xml")));
}

TEST(CheckCommand, RunsNothingWhenAReportCannotBeWritten) {
  const TempTree folder;
  const Output output =
      run_check({"--junit", folder.path("none/j.xml")}, {"sh", "-c", ": > " + folder.path("ran")});
  const Output history = run_check({"--history", folder.path("none/h.csv")},
                                   {"sh", "-c", ": > " + folder.path("ran")});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("none/j.xml"));
  EXPECT_EQ(history.exit_code, 3);
  EXPECT_THAT(history.err, HasSubstr("none/h.csv"));
  EXPECT_NE(::access(folder.path("ran").c_str(), F_OK), 0);
}

TEST(CheckCommand, KeepsStandardOutputPureForJson) {
  const Output output =
      run_check({"--json", "-", "--max-peak", "1GiB"}, {"sh", "-c", "echo noise; sleep 1"});

  EXPECT_EQ(json::parse(output.out).at("schema"), 1);
  EXPECT_THAT(output.err, HasSubstr("noise"));
}

TEST(CheckCommand, AnnotatesInAGithubWorkflow) {
  ::setenv("GITHUB_ACTIONS", "true", 1);
  const Output output = run_check({"--max-peak", "1KiB"}, {"sleep", "1.5"});
  ::unsetenv("GITHUB_ACTIONS");

  EXPECT_THAT(output.err, HasSubstr("\n::error title=tidemark check sleep%3A FAIL::max_peak: "));
  EXPECT_THAT(run_check({"--max-peak", "1KiB"}, {"sleep", "1.5"}).err, Not(HasSubstr("::error")));
}

TEST(CheckCommand, SaysWhatIsWrongWithItsUse) {
  EXPECT_EQ(run_check({"--max-growth", "fast"}, {"true"}).exit_code, 2);
  EXPECT_EQ(run_check({"--jobs", "2", "--repeat", "2"}, {"true"}).exit_code, 2);
  EXPECT_EQ(run_check({"--json", "-", "--junit", "-"}, {"true"}).exit_code, 2);
  const Output nothing = tests::run_tool({"check", "--config", "/nonexistent/tidemark.json"});
  EXPECT_EQ(nothing.exit_code, 3);
  EXPECT_THAT(nothing.err, HasSubstr("/nonexistent/tidemark.json"));
}

}  // namespace
}  // namespace tidemark
