// SPDX-License-Identifier: Apache-2.0
// `tidemark guard` of the training job of the whole machine.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/guard/guard_run.h"
#include "tests/integration/monitor/command_output.h"

namespace tidemark {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::guard;
using tests::Guarded;
using tests::run_guard;

// A dry run: whatever else trains on this machine is safe from this test.
TEST(GuardRefusal, OfAJobThatWasFound) {
  const tests::TrainingTree tree({"--trainer-mb", "200"});

  const Guarded run = run_guard(guard({"--find-training", "--dry-run", "--limit", "20MiB"}));

  EXPECT_EQ(run.exit_code, 3) << run.log;
  if (run.log.find("several jobs") != std::string::npos) {
    GTEST_SKIP() << "something else trains on this machine";
  }
  EXPECT_THAT(run.log,
              AllOf(HasSubstr("0 B are free below 20.0 MiB (--limit)"), Not(HasSubstr("STOP"))));
}

}  // namespace
}  // namespace tidemark
