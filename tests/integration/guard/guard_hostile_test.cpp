// SPDX-License-Identifier: Apache-2.0
// `tidemark guard` around jobs that do not want to end. Each is bounded by itself: by its memory,
// the count of its processes and its life.
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "common/text.h"
#include "common/units.h"
#include "tests/integration/guard/guard_run.h"
#include "tests/integration/guard/limited_group.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::guard;
using tests::Guarded;
using tests::guarded_job;
using tests::LimitedGroup;
using tests::run_guard;
using tests::TempTree;

TEST(GuardOfHostileJobs, KillsWhoIgnoresTheSignal) {
  const Guarded run = run_guard(guard(
      {"--limit", "150MiB", "--keep-free", "30MiB", "--grace", "300ms", "--interval", "100ms"},
      guarded_job({"--deaf", "1", "--leak-mb", "1", "--max-mb", "125", "--count", "100000",
                   "--step-ms", "5"})));

  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.log, AllOf(HasSubstr("STOP: sent SIGTERM"), HasSubstr("KILL: killed 1 process"),
                             HasSubstr("the grace time is over")));
}

TEST(GuardOfHostileJobs, DoesNotWaitForTheGraceTimeWhenTheReserveGoes) {
  const Guarded run = run_guard(guard(
      {"--limit", "150MiB", "--keep-free", "30MiB", "--grace", "10min", "--interval", "100ms"},
      guarded_job({"--deaf", "1", "--leak-mb", "1", "--max-mb", "400", "--count", "100000",
                   "--step-ms", "5"})));

  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.log,
              AllOf(HasSubstr("KILL: killed 1 process"), HasSubstr("the kernel would be next")));
}

TEST(GuardOfHostileJobs, IsFasterThanABurstBelowARealLimit) {
  const LimitedGroup group(1024 * kMiB);
  if (!group.usable()) {
    GTEST_SKIP() << "no control group can be made here";
  }
  const Guarded run = run_guard(guard(
      {"--keep-free", "256MiB"}, group.wrap(guarded_job({"--burst-mb", "1800", "--deaf", "1",
                                                         "--count", "200", "--step-ms", "150"}))));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.log, AllOf(HasSubstr("STOP: sent SIGTERM"), HasSubstr("KILL: killed"),
                             HasSubstr("tidemark-guard-")));
  EXPECT_EQ(group.oom_kills(), 0U);
}

TEST(GuardOfHostileJobs, EndsAForkBombBelowARealLimit) {
  const LimitedGroup group(512 * kMiB);
  if (!group.usable()) {
    GTEST_SKIP() << "no control group can be made here";
  }
  // 400 processes of 1 MB and more: some 600 MB with what the kernel needs for them.
  const Guarded run =
      run_guard(guard({"--keep-free", "128MiB", "--grace", "200ms"},
                      group.wrap(guarded_job({"--bomb", "400", "--deaf", "1", "--count", "100000",
                                              "--step-ms", "150"}))));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.log, HasSubstr("KILL: killed"));
  EXPECT_EQ(group.oom_kills(), 0U);
}  // and the group could be removed: nobody is left in it

// A group of the v2 hierarchy that is the job's alone; the memory controller need not be in it.
TEST(GuardOfHostileJobs, EndsAJobThatHasAControlGroupForItself) {
  const std::string mounts = tests::content_of("/proc/self/mountinfo");
  std::string place;
  std::string_view rest = mounts;
  while (const auto line = next_line(rest)) {
    if (line->find(" - cgroup2 ") != std::string_view::npos) {
      place = std::string(split(*line, ' ')[4]);
    }
  }
  const std::string group = place + "/tidemark-guard-" + std::to_string(::getpid());
  if (place.empty() || ::mkdir(group.c_str(), 0755) != 0 ||
      ::access((group + "/cgroup.kill").c_str(), W_OK) != 0) {
    ::rmdir(group.c_str());
    GTEST_SKIP() << "no control group of version 2 can be made here";
  }
  std::vector<std::string> command{"/bin/sh", "-c",
                                   "echo $$ > " + group + "/cgroup.procs && exec \"$@\"", "sh"};
  for (const std::string& word : guarded_job({"--deaf", "1", "--leak-mb", "1", "--max-mb", "125",
                                              "--count", "100000", "--step-ms", "5"})) {
    command.push_back(word);
  }

  const Guarded run = run_guard(guard(
      {"--limit", "150MiB", "--keep-free", "30MiB", "--grace", "300ms", "--interval", "100ms"},
      command));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.log, HasSubstr("and all of its control group"));
  while (::rmdir(group.c_str()) != 0 && errno == EBUSY) {
    std::this_thread::yield();
  }
}

// Its parent is the tool, whose protection it must not have.
TEST(GuardOfHostileJobs, TheJobDoesNotInheritTheProtectionOfTheGuard) {
  const TempTree dir;
  const std::string scores = dir.path("scores");
  const std::string look = "cat /proc/self/oom_score_adj >> " + scores +
                           "; sleep 0.7; echo guard $(cat /proc/$PPID/oom_score_adj) >> " + scores +
                           "; exec \"$@\"";
  std::vector<std::string> command{"/bin/sh", "-c", look, "sh"};
  for (const std::string& word : guarded_job({"--leak-mb", "1", "--count", "150", "--step-ms", "5",
                                              "--checkpoint", dir.path("checkpoint")})) {
    command.push_back(word);
  }
  std::vector<std::string> argv{"/bin/sh", "-c",
                                "echo 300 > /proc/self/oom_score_adj && exec \"$@\"", "sh"};
  for (const std::string& word :
       guard({"--limit", "150MiB", "--keep-free", "30MiB", "--interval", "100ms", "--restart"},
             command)) {
    argv.push_back(word);
  }

  const Guarded run = run_guard(argv);

  EXPECT_EQ(run.exit_code, 0) << run.log;
  std::vector<int> of_job;
  std::vector<int> of_guard;
  const std::string text = tests::content_of(scores);
  std::string_view rest = text;
  while (const auto line = next_line(rest)) {
    const bool is_guard = line->starts_with("guard ");
    (is_guard ? of_guard : of_job)
        .push_back(std::stoi(std::string(is_guard ? line->substr(6) : *line)));
  }
  EXPECT_THAT(of_job, testing::ElementsAre(300, 300)) << "also after the restart";
  EXPECT_THAT(of_guard, testing::Each(testing::Le(0)));
}

}  // namespace
}  // namespace tidemark
