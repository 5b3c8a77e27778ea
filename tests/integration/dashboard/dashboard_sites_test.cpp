// SPDX-License-Identifier: Apache-2.0
// The lines of code that grow, on the dashboard: of a recorded profile, and of one that runs.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"
#include "tests/support/tmux_session.h"

namespace tidemark {
namespace {

using tests::Subprocess;
using tests::TmuxSession;

class DashboardSites : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = tests::no_tmux_because(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }

  static TmuxSession::Options options() { return {120, 40, {"LC_ALL=C.UTF-8", "NO_COLOR="}}; }
  static std::string tool() { return "'" + tests::tool_path() + "'"; }
  // Leaks 256 KiB at every step of 20 ms.
  static std::vector<std::string> profile(const std::string& steps,
                                          const std::vector<std::string>& more = {}) {
    std::vector<std::string> argv{tests::tool_path(), "profile", "--plain", "--mode", "exact",
                                  "--interval",       "200ms"};
    argv.insert(argv.end(), more.begin(), more.end());
    argv.insert(argv.end(), {"--", tests::victim_path("leak_by_line"), "--count", steps});
    return argv;
  }
};

TEST_F(DashboardSites, ShowsTheGrowingLinesOfARecordedProfile) {
  const tests::TempTree folder;
  const std::string run = folder.path("run.tidemark");
  Subprocess recorded(profile("500", {"-o", run}));
  ASSERT_EQ(recorded.wait(), 7) << recorded.errors();  // as the victim does

  const TmuxSession session(tool() + " monitor --warmup 1s --replay " + run + " --speed 10x",
                            options());

  EXPECT_TRUE(session.shows("── lines of code that grow"));
  EXPECT_TRUE(session.shows("leak_by_line.cpp:"));
}

TEST_F(DashboardSites, ShowsTheGrowingLinesWhileSomebodyElseProfiles) {
  Subprocess profiled(profile("4000"));
  const TmuxSession session(
      tool() + " monitor --warmup 1s --interval 200ms --pid " + std::to_string(profiled.pid()),
      options());

  EXPECT_TRUE(session.shows("── lines of code that grow"));
  EXPECT_TRUE(session.shows("leak_by_line.cpp:"));
}

// The job goes on without a tracer: what grew once is no news of it.
TEST_F(DashboardSites, ForgetsThemWhenTheProfileHasEnded) {
  const std::string profiling = fmt::format("'{}'", fmt::join(profile("400"), "' '"));
  const Subprocess job({"/bin/sh", "-c", profiling + " > /dev/null 2>&1; sleep 60; true"});
  const TmuxSession session(
      tool() + " monitor --warmup 1s --interval 200ms --pid " + std::to_string(job.pid()),
      options());
  ASSERT_TRUE(session.shows("── lines of code that grow"));

  EXPECT_TRUE(session.shows_no_more("── lines of code that grow"));
}

}  // namespace
}  // namespace tidemark
