// SPDX-License-Identifier: Apache-2.0
#include "check/result.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "check/one_check.h"
#include "tests/unit/check/sample_check.h"

namespace tidemark::check {
namespace {

using tracker::BudgetState;

CheckRun ended(int status) {
  CheckRun run;
  run.ending.command_status = status;
  return run;
}

TEST(CheckProblem, IsNoneOfACommandThatEndedWell) {
  EXPECT_EQ(problem_with(CheckSpec{}, ended(0)), "");
}

TEST(CheckProblem, IsTheFailureOfTheCommand) {
  EXPECT_EQ(problem_with(CheckSpec{}, ended(7)), "the command failed with status 7");
  EXPECT_EQ(problem_with(CheckSpec{}, ended(137)),
            "the command was killed by SIGKILL (status 137)");
  EXPECT_EQ(problem_with(CheckSpec{}, CheckRun{}), "the command could not be started");
}

TEST(CheckProblem, IsATimeoutButNotADuration) {
  CheckRun run = ended(143);
  run.ending.ran_out_of_time = true;
  CheckSpec timeout;
  timeout.timeout_ns = 10 * kNsPerSecond;
  CheckSpec duration;
  duration.duration_ns = 10 * kNsPerSecond;

  EXPECT_EQ(problem_with(timeout, run), "the command did not end within 10 s");
  EXPECT_EQ(problem_with(duration, run), "");
}

TEST(CheckProblem, IsNotThatTheUserStoppedIt) {
  CheckRun run = ended(130);
  run.ending.was_told_to_stop = true;

  EXPECT_EQ(problem_with(CheckSpec{}, run), "");
}

TEST(CheckStatusOf, IsTheWorstOfItsRows) {
  const auto rows = [](BudgetState state) {
    return tracker::BudgetRows{tests::peak_row(BudgetState::kWithin), tests::growth_row(state)};
  };
  EXPECT_EQ(status_of(rows(BudgetState::kWithin), false, false), CheckStatus::kPass);
  EXPECT_EQ(status_of(rows(BudgetState::kSuppressed), false, false), CheckStatus::kPass);
  EXPECT_EQ(status_of(rows(BudgetState::kUndetermined), false, false), CheckStatus::kUndetermined);
  EXPECT_EQ(status_of(rows(BudgetState::kExceeded), false, false), CheckStatus::kFail);
  EXPECT_EQ(status_of(rows(BudgetState::kExceeded), true, false), CheckStatus::kError);
  EXPECT_EQ(status_of({}, false, true), CheckStatus::kUndetermined);
  EXPECT_EQ(status_of({}, false, false), CheckStatus::kPass);
}

TEST(CheckStatusOf, HasTheExitCodesOfTheInterface) {
  EXPECT_EQ(exit_code_of(CheckStatus::kPass), 0);
  EXPECT_EQ(exit_code_of(CheckStatus::kFail), 1);
  EXPECT_EQ(exit_code_of(CheckStatus::kError), 3);
  EXPECT_EQ(exit_code_of(CheckStatus::kUndetermined), 4);
}

TEST(NumberedOutput, NumbersLaterRunsBeforeTheEndOfTheName) {
  EXPECT_EQ(numbered_output("", 2), "");
  EXPECT_EQ(numbered_output("run.tidemark", 1), "run.tidemark");
  EXPECT_EQ(numbered_output("a.b/run.tidemark", 3), "a.b/run-3.tidemark");
  EXPECT_EQ(numbered_output("a.b/run", 2), "a.b/run-2");
  EXPECT_EQ(numbered_output("a/.run", 2), "a/.run-2");
  EXPECT_EQ(tagged_output("a.b/run.tidemark", "train"), "a.b/run-train.tidemark");
}

}  // namespace
}  // namespace tidemark::check
