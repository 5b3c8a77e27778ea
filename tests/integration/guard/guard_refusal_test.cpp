// SPDX-License-Identifier: Apache-2.0
// Jobs that are already where `tidemark guard` would stop them: it refuses, and touches nobody.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
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
using tests::guard;
using tests::Guarded;
using tests::guarded_job;
using tests::LimitedGroup;
using tests::run_guard;
using tests::Subprocess;
using tests::TempTree;

// A job of 60 MB that runs until it is told to stop.
const std::vector<std::string> kJob =
    guarded_job({"--base-mb", "60", "--count", "100000", "--step-ms", "5"});

std::vector<std::string> in_shell(const std::string& script, const std::vector<std::string>& argv) {
  std::vector<std::string> command{"/bin/sh", "-c", script + "; exec \"$@\"", "sh"};
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

// The job says that it begins when it holds its memory.
void expect_refused(const std::vector<std::string>& job_command, std::vector<std::string> options,
                    const char* limit) {
  Subprocess job(job_command);
  job.read_until("begins");
  const TempTree dir;
  const std::string run_file = dir.path("run.tidemark");
  options.insert(options.end(), {"--pid", std::to_string(job.pid()), "-o", run_file});

  const Guarded run = run_guard(guard(options));

  EXPECT_EQ(run.exit_code, 3) << run.log;
  EXPECT_THAT(run.log, AllOf(HasSubstr(limit), HasSubstr("the job would be stopped at once"),
                             Not(HasSubstr("STOP"))));
  EXPECT_FALSE(std::filesystem::exists(run_file)) << "the next try can have this name";
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 128 + SIGINT) << "it ran on: " << job.output();
}

TEST(GuardRefusal, OfAJobBeyondTheGivenLimit) {
  expect_refused(kJob, {"--limit", "50MiB", "--keep-free", "10MiB"}, "0 B are free below 50.0 MiB");
}

TEST(GuardRefusal, OfAJobThatHasAlreadyTouchedWhatIsToBeKeptFree) {
  expect_refused(kJob, {"--limit", "100MiB", "--keep-free", "60MiB"}, "100 MiB (--limit)");
}

TEST(GuardRefusal, OfAJobNearItsResourceLimit) {
  expect_refused(in_shell("ulimit -v 300000", kJob), {"--keep-free", "270MiB"},
                 "(RLIMIT_AS of pid");
}

TEST(GuardRefusal, OfAJobNearTheLimitOfItsControlGroup) {
  const LimitedGroup group(128 * kMiB);
  if (!group.usable()) {
    GTEST_SKIP() << "no control group can be made here";
  }
  expect_refused(group.wrap(kJob), {"--keep-free", "100MiB"}, "tidemark-guard-");
}

// Without privileges there is always pid 1; with them, the guard is run as somebody else.
std::vector<std::string> guard_of_another_user(const Subprocess& job,
                                               std::vector<std::string> options) {
  const bool is_root = ::geteuid() == 0;
  options.insert(options.end(), {"--pid", is_root ? std::to_string(job.pid()) : "1"});
  std::vector<std::string> argv = guard(options);
  if (is_root) {
    argv.insert(argv.begin(), {"setpriv", "--reuid", "65534", "--clear-groups"});
  }
  return argv;
}

TEST(GuardRefusal, OfAJobThatThisUserMayNotSignal) {
  Subprocess job(kJob);
  job.read_until("begins");

  const Guarded run = run_guard(guard_of_another_user(job, {"--limit", "100GiB"}));

  EXPECT_EQ(run.exit_code, 3) << run.log;
  EXPECT_THAT(run.log, AllOf(HasSubstr("this user may not signal it"), HasSubstr("--dry-run")));
}

TEST(GuardRefusal, ADryRunOfAJobThatThisUserMayNotSignalSaysSo) {
  Subprocess job(kJob);
  job.read_until("begins");

  const Guarded run = run_guard(guard_of_another_user(
      job, {"--limit", "100GiB", "--dry-run", "--duration", "1s", "--interval", "100ms"}));

  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.log, HasSubstr("note: pid "));
  EXPECT_THAT(run.log, HasSubstr("without --dry-run it would not be guarded"));
}

TEST(GuardRefusal, OfACommandThatWouldInheritALimitBelowWhatIsToBeKeptFree) {
  const Guarded run = run_guard(in_shell(
      "ulimit -d 500000", guard({"--keep-free", "600MiB"}, {"/bin/sh", "-c", "echo it ran"})));

  EXPECT_EQ(run.exit_code, 3) << run.log;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.log, AllOf(HasSubstr("RLIMIT_DATA"), HasSubstr("would be stopped at once")));
}

}  // namespace
}  // namespace tidemark
