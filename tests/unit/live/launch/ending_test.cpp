// SPDX-License-Identifier: Apache-2.0
#include "live/launch/ending.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/procfs/process_handle.h"
#include "tests/support/child_process.h"

namespace tidemark::live {
namespace {

using tests::ChildProcess;

constexpr std::int64_t kEndNs = 1000;

bool is_readable(int fd, int timeout_ms) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, timeout_ms) == 1;
}

void wait_deaf(const ChildProcess::Link& link) {
  ::signal(SIGUSR1, SIG_IGN);
  link.signal_ready();
  link.wait_for_order();
}

TEST(StopRequest, IsOverWhenAllHaveEnded) {
  ChildProcess first(wait_deaf);
  ChildProcess second(wait_deaf);
  ASSERT_TRUE(first.wait_ready() && second.wait_ready());
  const std::vector<ProcessKey> both{*monitor::process_key_of("/proc", first.pid()),
                                     *monitor::process_key_of("/proc", second.pid())};

  StopRequest request(both, SIGTERM, kEndNs);
  first.wait_until_zombie();
  EXPECT_TRUE(is_readable(request.fd(), 10'000));
  second.wait_until_zombie();

  EXPECT_TRUE(request.is_over(0));
  EXPECT_EQ(request.fd(), -1);
  EXPECT_EQ(WTERMSIG(first.wait()), SIGTERM);
  EXPECT_EQ(WTERMSIG(second.wait()), SIGTERM);
}

TEST(StopRequest, IsOverWhenTheTimeIs) {
  const ChildProcess deaf(wait_deaf);
  ASSERT_TRUE(deaf.wait_ready());

  StopRequest request(std::vector{*monitor::process_key_of("/proc", deaf.pid())}, SIGUSR1, kEndNs);

  EXPECT_FALSE(request.is_over(kEndNs - 1));
  EXPECT_FALSE(is_readable(request.fd(), 0));
  EXPECT_TRUE(request.is_over(kEndNs));
}

TEST(StopRequest, DoesNotWaitForSomebodyElseWithTheSamePid) {
  const ChildProcess other(wait_deaf);
  ASSERT_TRUE(other.wait_ready());
  ProcessKey key = *monitor::process_key_of("/proc", other.pid());
  --key.start_ticks;

  StopRequest request(std::vector{key}, SIGTERM, kEndNs);

  EXPECT_TRUE(request.is_over(0));
  EXPECT_TRUE(monitor::process_key_of("/proc", other.pid())) << "it got nothing";
}

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class TreeEndingTest : public testing::Test {
 protected:
  std::vector<std::pair<pid_t, int>> act(std::int64_t now_ns, std::vector<ProcessKey> members) {
    std::vector<std::pair<pid_t, int>> sent;
    ending_.act(now_ns, members,
                [&](const ProcessKey& key, int number) { sent.emplace_back(key.pid, number); });
    return sent;
  }

  TreeEnding ending_{1000, 500};
};

TEST_F(TreeEndingTest, LeavesTheTreeAloneUntilItsTimeIsOver) {
  EXPECT_THAT(act(999, {{7, 1}}), IsEmpty());
  EXPECT_FALSE(ending_.has_begun());
  EXPECT_EQ(ending_.due_ns(), 1000);
}

TEST_F(TreeEndingTest, AsksEverybodyFirst) {
  EXPECT_THAT(act(1000, {{7, 1}, {8, 1}}),
              ElementsAre(Pair(7, SIGTERM), Pair(7, SIGCONT), Pair(8, SIGTERM), Pair(8, SIGCONT)));
  EXPECT_TRUE(ending_.has_begun());
  EXPECT_FALSE(ending_.had_to_kill());
  EXPECT_EQ(ending_.due_ns(), 1500);
}

TEST_F(TreeEndingTest, KillsWhoIsLeftAfterTheGraceTimeAndWhoCameSince) {
  act(1000, {{7, 1}});

  EXPECT_THAT(act(1499, {{7, 1}}), IsEmpty());
  EXPECT_THAT(act(1500, {{7, 1}}), ElementsAre(Pair(7, SIGKILL)));
  EXPECT_TRUE(ending_.had_to_kill());
  EXPECT_THAT(act(ending_.due_ns(), {{9, 1}}), ElementsAre(Pair(9, SIGKILL)));
}

TEST_F(TreeEndingTest, HasNobodyToKillWhenAllObeyed) {
  act(1000, {{7, 1}});

  EXPECT_THAT(act(1500, {}), IsEmpty());
  EXPECT_FALSE(ending_.had_to_kill());
}

TEST(SignalProcess, SparesAnotherProcessThatHasGotThePid) {
  // Ours is alive, and has not started at tick 1: the signal must not come.
  monitor::send_signal({::getpid(), 1}, SIGKILL);
}

}  // namespace
}  // namespace tidemark::live
