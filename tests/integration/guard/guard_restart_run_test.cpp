// SPDX-License-Identifier: Apache-2.0
// Checkpoint, stop, start again: training in chunks.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/units.h"
#include "tests/integration/guard/guard_run.h"
#include "tests/integration/guard/limited_group.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::content_of;
using tests::count_of;
using tests::guard;
using tests::Guarded;
using tests::guarded_job;
using tests::LimitedGroup;
using tests::run_guard;
using tests::Subprocess;
using tests::TempTree;

const std::vector<std::string> kChunks = {"--limit",    "150MiB", "--keep-free", "30MiB",
                                          "--interval", "100ms",  "--restart"};

TEST(GuardRestart, TrainsInChunksUntilAllStepsAreDone) {
  const TempTree dir;
  std::vector<std::string> options = kChunks;
  options.insert(options.end(), {"-o", dir.path("night.tidemark")});

  const Guarded run =
      run_guard(guard(options, guarded_job({"--leak-mb", "1", "--count", "250", "--step-ms", "5",
                                            "--checkpoint", dir.path("checkpoint")})));

  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_EQ(content_of(dir.path("checkpoint")), "250\n");
  EXPECT_THAT(run.out, HasSubstr("done after step 250"));
  const std::size_t restarts = count_of(run.log, "RESTART: ");
  EXPECT_GE(restarts, 2U);
  EXPECT_EQ(count_of(run.log, "STOP: "), restarts);
  EXPECT_THAT(run.log, Not(HasSubstr("the command goes on")));
  EXPECT_LE(count_of(run.log, "no look at what holds"), 1U);
  EXPECT_NE(content_of(dir.path("night.tidemark")), "");
  EXPECT_NE(content_of(dir.path("night.2.tidemark")), "");
  EXPECT_NE(content_of(dir.path("night.3.tidemark")), "");
}

TEST(GuardRestart, WorksBelowARealControlGroup) {
  const LimitedGroup group(192 * kMiB);
  if (!group.usable()) {
    GTEST_SKIP() << "no control group can be made here";
  }
  const TempTree dir;

  const Guarded run =
      run_guard(guard({"--restart", "--keep-free", "40MiB", "--interval", "100ms"},
                      group.wrap(guarded_job({"--leak-mb", "2", "--count", "150", "--step-ms", "5",
                                              "--checkpoint", dir.path("checkpoint")}))));

  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_EQ(content_of(dir.path("checkpoint")), "150\n");
  EXPECT_GE(count_of(run.log, "RESTART: "), 2U);
  EXPECT_EQ(group.oom_kills(), 0U);
}

TEST(GuardRestart, GivesUpWithoutProgress) {
  // It begins at step 1 again and again.
  const Guarded run = run_guard(
      guard(kChunks, guarded_job({"--leak-mb", "1", "--count", "1000", "--step-ms", "5"})));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_LE(count_of(run.log, "RESTART: "), 5U);
  EXPECT_THAT(run.log, HasSubstr("GIVEN UP: not started again: it has not come beyond step"));
}

TEST(GuardRestart, WithoutKnownStepsItStartsOnce) {
  const Guarded run =
      run_guard(guard(kChunks, {tests::victim_path("guarded_job"), "--life-s", "60", "--leak-mb",
                                "1", "--count", "1000", "--step-ms", "5"}));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_EQ(count_of(run.log, "RESTART: "), 1U);
  EXPECT_THAT(run.log, HasSubstr("no steps are known"));
}

TEST(GuardRestart, AJobThatEndsByItselfIsNotStartedAgain) {
  const Guarded run = run_guard(guard(kChunks, {"/bin/sh", "-c", "echo once; exit 5"}));
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_EQ(count_of(run.out, "once"), 1U);
}

// Two parts in one script; the first is stopped, the second is small and ends well.
TEST(GuardRestart, AScriptThatGoesOnAndEndsWellIsNotStartedAgain) {
  const std::string script =
      "\"$@\" --leak-mb 1 --count 100000 --step-ms 5; \"$@\" --count 200 --step-ms 10; exit 4";
  std::vector<std::string> command{"/bin/sh", "-c", script, "sh"};
  for (const std::string& word : guarded_job({})) {
    command.push_back(word);
  }
  std::vector<std::string> once = kChunks;
  once.pop_back();  // --restart

  for (const std::vector<std::string>& options : {kChunks, once}) {
    const Guarded run = run_guard(guard(options, command));

    EXPECT_EQ(run.exit_code, 4) << run.log;
    EXPECT_EQ(count_of(run.log, "STOP: "), 1U) << run.log;
    EXPECT_EQ(count_of(run.log, "the command goes on; unless somebody trains again"), 1U);
    EXPECT_EQ(count_of(run.out, "done after step 200"), 1U) << run.out;
    EXPECT_THAT(run.log, AllOf(Not(HasSubstr("RESTART")), Not(HasSubstr("GIVEN UP"))));
  }
}

// The first part is stopped for its leak, by the forecast; the second does not leak.
TEST(GuardRestart, TheLeakOfTheFirstPartOfAScriptDoesNotStopTheSecond) {
  const std::string script =
      "\"$@\" --leak-mb 0.4 --count 100000; \"$@\" --base-mb 50 --count 300; exit 4";
  std::vector<std::string> command{"/bin/sh", "-c", script, "sh"};
  for (const std::string& word : guarded_job({"--step-ms", "10"})) {
    command.push_back(word);
  }

  const Guarded run = run_guard(
      guard({"--limit", "600MiB", "--horizon", "60s", "--warmup", "20steps", "--interval", "100ms"},
            command));

  EXPECT_EQ(run.exit_code, 4) << run.log;
  EXPECT_EQ(count_of(run.log, "STOP: "), 1U) << run.log;
  EXPECT_THAT(run.log, HasSubstr("it leaks, and reaches the limit in"));
  EXPECT_THAT(run.out, HasSubstr("done after step 300"));
}

TEST(GuardRestart, TheUserEndsItForGood) {
  Subprocess process(guard(kChunks, guarded_job({"--count", "100000", "--step-ms", "5"})));
  process.read_until("begins");

  process.signal(SIGTERM);

  EXPECT_EQ(process.wait(), 0) << process.errors();
  EXPECT_THAT(process.output(), HasSubstr("stopped after step"));
  EXPECT_THAT(process.errors(), Not(HasSubstr("RESTART")));
}

std::vector<std::string> in_script(const std::string& script,
                                   const std::vector<std::string>& options) {
  std::vector<std::string> command{"/bin/sh", "-c", script, "sh"};
  for (const std::string& word : guarded_job(options)) {
    command.push_back(word);
  }
  return command;
}

TEST(GuardRestart, ToldToStopTheTrainerBelowAScriptSavesItselfBeforeTheScriptIsTold) {
  const TempTree dir;
  Subprocess process(guard(
      kChunks,
      in_script("trap 'echo script told; exit 9' TERM; \"$@\"; while :; do sleep 0.05; done",
                {"--count", "100000", "--step-ms", "5", "--checkpoint", dir.path("checkpoint")})));
  process.read_until("begins");
  process.read_for(std::chrono::milliseconds(500));  // the guard has seen it

  process.signal(SIGTERM);

  EXPECT_EQ(process.wait(), 9) << process.errors();
  EXPECT_NE(content_of(dir.path("checkpoint")), "");
  EXPECT_THAT(process.output(), testing::ContainsRegex("stopped after step [0-9]+\nscript told"));
  EXPECT_THAT(process.errors(), AllOf(HasSubstr("told to stop: pid "), HasSubstr("is told first"),
                                      Not(HasSubstr("RESTART"))));
}

TEST(GuardRestart, ToldToStopTheScriptOfATrainerThatDoesNotListenIsToldAfterTheGraceTime) {
  std::vector<std::string> options = kChunks;
  options.insert(options.end(), {"--grace", "300ms"});
  Subprocess process(guard(
      options, in_script("\"$@\"; echo went on",
                         {"--count", "100000", "--step-ms", "5", "--deaf", "1", "--life-s", "4"})));
  process.read_until("begins");
  process.read_for(std::chrono::milliseconds(500));

  process.signal(SIGTERM);

  EXPECT_EQ(process.wait(), 128 + SIGTERM) << process.errors();
  EXPECT_THAT(process.errors(), HasSubstr("it has not ended in that time"));
  EXPECT_THAT(process.output(), Not(HasSubstr("went on")));
}

// Who has the output open is not waited for, but for the time that leftovers have to end.
TEST(GuardRestart, IsNotHeldUpByALeftoverThatHasTheOutputOpen) {
  const TempTree dir;
  std::vector<std::string> options = kChunks;
  options.insert(options.end(), {"--step-regex", "after step ([0-9]+)", "--grace", "1s"});

  const auto begin = std::chrono::steady_clock::now();
  const Guarded run = run_guard(
      guard(options, in_script("if [ $TIDEMARK_RESTARTS = 0 ]; then sleep 60 & fi; exec \"$@\"",
                               {"--leak-mb", "1", "--count", "150", "--step-ms", "5",
                                "--checkpoint", dir.path("checkpoint")})));

  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_GE(count_of(run.log, "RESTART: "), 1U) << run.log;
  EXPECT_THAT(run.out, HasSubstr("done after step 150"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

TEST(GuardRestart, WhatTheCommandLeftBehindIsGuardedOnAndNoReasonToStartItAgain) {
  const Guarded run = run_guard(guard(
      kChunks, in_script("(sleep 1.5; exec \"$@\" --leak-mb 1 --count 100000) & \"$@\" --count 20",
                         {"--step-ms", "5"})));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.out, AllOf(HasSubstr("done after step 20"), HasSubstr("stopped after step")));
  EXPECT_THAT(run.log, AllOf(HasSubstr("the command has ended; "), HasSubstr("STOP: sent SIGTERM"),
                             Not(HasSubstr("RESTART"))));
}

TEST(GuardRestart, WhatTheKernelKilledIsStartedAgain) {
  const LimitedGroup group(128 * kMiB);
  if (!group.usable()) {
    GTEST_SKIP() << "no control group can be made here";
  }
  const TempTree dir;
  // A leap over all that is kept free at once, in the first start only.
  const std::string script =
      "if [ $TIDEMARK_RESTARTS = 0 ]; then exec \"$@\" --burst-mb 400 --step-ms 20; fi; exec "
      "\"$@\"";
  std::vector<std::string> job{"/bin/sh", "-c", script, "sh"};
  for (const std::string& word : guarded_job({"--count", "60"})) {
    job.push_back(word);
  }

  const Guarded run = run_guard(
      guard({"--restart", "--keep-free", "1MiB", "--interval", "100ms"}, group.wrap(job)));

  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.log, HasSubstr("RESTART: "));
}

TEST(GuardRestart, GoesOnWhereTheRunFileOfALaterStartCannotBeMade) {
  const TempTree dir;
  dir.write("out/keep", "");
  std::vector<std::string> options = kChunks;
  options.insert(options.end(), {"-o", dir.path("out/night.tidemark")});

  const Guarded run =
      run_guard(guard(options, in_script("rm -rf " + dir.path("out") + "; exec \"$@\"",
                                         {"--leak-mb", "1", "--count", "150", "--step-ms", "5",
                                          "--checkpoint", dir.path("checkpoint")})));

  EXPECT_EQ(content_of(dir.path("checkpoint")), "150\n") << run.log;
  EXPECT_THAT(run.log, AllOf(HasSubstr("RESTART: "), HasSubstr("night.2.tidemark"),
                             HasSubstr("watching goes on without recording")));
  EXPECT_EQ(run.exit_code, 3) << "what was asked for is missing";
}

TEST(GuardRestart, LooksForTheRunFilesOfLaterStartsAtOnce) {
  const TempTree dir;
  dir.write("night.2.tidemark", "an old one");
  std::vector<std::string> options = kChunks;
  options.insert(options.end(), {"-o", dir.path("night.tidemark")});

  const Guarded run = run_guard(guard(options, {"/bin/true"}));

  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.log, HasSubstr("night.2.tidemark exists"));
}

}  // namespace
}  // namespace tidemark
