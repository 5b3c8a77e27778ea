// SPDX-License-Identifier: Apache-2.0
// Attaching to a process from the dashboard, and detaching.
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/inject/attach.h"
#include "tests/integration/dashboard/dashboard_session.h"

namespace tidemark {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::Subprocess;
using tests::TmuxSession;
using tests::victim_path;

constexpr const char* kPane = "── lines of code that grow";

class DashboardAttach : public tests::DashboardSession {
 protected:
  static std::string monitor(const std::string& target) {
    return tool() + " monitor --warmup 1s --interval 200ms -o run.tidemark " + target;
  }
  static std::string monitor(const Subprocess& job) {
    return monitor(fmt::format("--pid {}", job.pid()));
  }
  // How many addresses of functions lead to the tracer.
  static std::size_t hooked_in(pid_t pid) {
    const auto attachment = inject::Attachment::find(pid);
    EXPECT_TRUE(attachment) << attachment.error().what;
    const auto count = attachment ? attachment->count_hooked() : Result<std::size_t>(0U);
    EXPECT_TRUE(count) << count.error().what;
    return count ? *count : 0;
  }
};

TEST_F(DashboardAttach, ShowsTheLinesOfAProcessUntilItIsDetached) {
  const Subprocess job({victim_path("leak_by_line"), "--count", "100000"});
  const std::string name = fmt::format("trainer {}", job.pid());
  const TmuxSession session(monitor(job), options());
  ASSERT_TRUE(session.shows("watching trainer"));

  session.press({"A"});
  EXPECT_TRUE(session.shows("Attach to trainer"));  // its pid may be on the next line
  session.press({"n"});
  EXPECT_TRUE(session.shows_no_more("Attach to"));
  session.press({"A", "y"});
  EXPECT_TRUE(session.shows(fmt::format("attached to pid {}", job.pid())));
  EXPECT_TRUE(session.shows("ATTACHED"));
  EXPECT_TRUE(session.shows(kPane));
  EXPECT_TRUE(session.shows("leak_by_line.cpp:"));
  EXPECT_GT(hooked_in(job.pid()), 0U);
  session.press({"A"});
  EXPECT_TRUE(session.shows(name + " is attached to: D detaches"));

  session.press({"D"});
  EXPECT_TRUE(session.shows("detached from " + name));
  EXPECT_EQ(hooked_in(job.pid()), 0U);
  EXPECT_TRUE(session.shows_no_more(kPane));

  session.press({"q"});
  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_THAT(exported(session.folder().path("run.tidemark")),
              testing::AllOf(HasSubstr("attaching to " + name), HasSubstr("detached from " + name)))
      << "what was done to the job belongs to its run";
  EXPECT_EQ(::kill(job.pid(), 0), 0);
}

TEST_F(DashboardAttach, LeavesNothingInTheProcessWhenItIsClosed) {
  const Subprocess job({victim_path("leak_by_line"), "--count", "100000"});
  for (int i = 0; i < 2; ++i) {  // the second time the tracer is there, and rests
    const TmuxSession session(monitor(job), options());
    ASSERT_TRUE(session.shows("watching trainer"));
    session.press({"A", "y"});
    EXPECT_TRUE(session.shows(kPane));

    session.press({"q"});

    EXPECT_EQ(session.exit_code(), 0);
    EXPECT_EQ(hooked_in(job.pid()), 0U);
  }
}

TEST_F(DashboardAttach, LeavesNothingInTheProcessWhenItIsKilled) {
  const Subprocess job({victim_path("leak_by_line"), "--count", "100000"});
  const TmuxSession session(monitor(job), options());
  ASSERT_TRUE(session.shows("watching trainer"));
  const pid_t dashboard = session.pid_of("tidemark");
  ASSERT_GT(dashboard, 0);
  session.press({"A", "y"});
  ASSERT_TRUE(session.shows(kPane));

  ::kill(dashboard, SIGKILL);

  std::size_t hooked = hooked_in(job.pid());
  for (int i = 0; hooked > 0 && i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    hooked = hooked_in(job.pid());
  }
  EXPECT_EQ(hooked, 0U);
}

TEST_F(DashboardAttach, SaysWhyItCannotAttach) {
  const Subprocess job({victim_path("leak_static"), "--count", "1000000"});
  const TmuxSession session(monitor(job), options());
  ASSERT_TRUE(session.shows("watching trainer"));

  session.press({"A", "y"});

  EXPECT_TRUE(session.shows(fmt::format("error: cannot attach to pid {}", job.pid())));
  EXPECT_TRUE(session.shows_no_more("ATTACHED"));
  session.press({"q"});
  EXPECT_EQ(session.exit_code(), 0);
}

// It is told to stop before it is done.
TEST_F(DashboardAttach, LeavesNothingInTheProcessWhenItIsClosedWhileItAttaches) {
  const Subprocess job({victim_path("leak_by_line"), "--count", "100000"});
  for (const int after_ms : {0, 30, 60, 100}) {
    const TmuxSession session(monitor(job), options());
    ASSERT_TRUE(session.shows("watching trainer"));
    session.press({"A", "y"});
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));

    session.press({"q"});

    EXPECT_EQ(session.exit_code(), 0);
    const auto left = inject::Attachment::find(job.pid());
    EXPECT_TRUE(!left || *left->count_hooked() == 0U) << after_ms;
    EXPECT_EQ(::kill(job.pid(), 0), 0);
  }
}

// Who attaches is a child of the dashboard as the command is, and no part of the job.
TEST_F(DashboardAttach, AttachesToTheCommandThatItHasStarted) {
  const TmuxSession session(monitor("-- " + victim_path("leak_by_line") + " --count 100000"),
                            options());
  ASSERT_TRUE(session.shows("watching trainer"));

  session.press({"A", "y"});

  EXPECT_TRUE(session.shows(kPane));
  session.press({"D"});
  EXPECT_TRUE(session.shows("detached from"));
  const pid_t command = session.pid_of("leak_by_line");
  ASSERT_GT(command, 0);
  ::kill(command, SIGTERM);
  EXPECT_EQ(session.exit_code(), 128 + SIGTERM) << "as the command";
  EXPECT_THAT(exported(session.folder().path("run.tidemark")), Not(HasSubstr("profile --plain")));
}

}  // namespace
}  // namespace tidemark
