// SPDX-License-Identifier: Apache-2.0
#include "live/launch/tree_ending.h"

#include <signal.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::live {
namespace {

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
