// SPDX-License-Identifier: Apache-2.0
#include "live/profile.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/exit_code.h"
#include "profiler/collect/preload.h"
#include "tests/support/fake_watch_system.h"

namespace tidemark::live {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;
using tests::FakeWatchSystem;

class RunProfileTest : public testing::Test {
 protected:
  RunProfileTest() { options.watch.pss = monitor::PssMode::kOff; }

  FakeWatchSystem system;
  ProfileOptions options;
};

TEST_F(RunProfileTest, StartsTheCommandWithTheTracerAndPassesOnItsStatus) {
  if (!collect::find_tracer()) {
    GTEST_SKIP() << "the tracer was not built";
  }
  options.watch.target.command = {"/bin/true"};
  system.at(2.5, [&] { system.end_command(3 << 8); });

  EXPECT_EQ(run_profile(options, &system), 3);

  ASSERT_TRUE(system.launched);
  EXPECT_THAT(system.launched->environment,
              Contains(Pair("LD_PRELOAD", HasSubstr("libtidemark_tracer.so"))));
  EXPECT_THAT(system.stderr_text(), HasSubstr("no process of the command could be traced"));
}

TEST_F(RunProfileTest, PrintsJsonOnStdoutAlone) {
  if (!collect::find_tracer()) {
    GTEST_SKIP() << "the tracer was not built";
  }
  options.watch.target.command = {"/bin/true"};
  options.watch.json = true;
  options.watch.step_regex = kNoStepRegex;
  system.at(2.5, [&] { system.end_command(0); });

  EXPECT_EQ(run_profile(options, &system), 0);

  EXPECT_THAT(system.stdout_text(), testing::StartsWith("{\"schema\":"));
  EXPECT_EQ(system.launched->stdout_fd, STDERR_FILENO);  // the command's goes there
}

TEST_F(RunProfileTest, RefusesToAttachToItself) {
  options.watch.target.pids = {::getpid()};

  EXPECT_EQ(run_profile(options, &system), kExitTarget);

  EXPECT_FALSE(system.launched);
  EXPECT_EQ(system.now_s(), 0.0);
}

}  // namespace
}  // namespace tidemark::live
