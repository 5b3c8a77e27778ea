// SPDX-License-Identifier: Apache-2.0
#include "guard/aftermath.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidemark::guard {
namespace {

constexpr ProcessKey kScript{10, 100};
constexpr ProcessKey kTrainer{11, 110};
constexpr ProcessKey kWorker{12, 120};
constexpr ProcessKey kSecond{11, 990};  // the pid was used again

// A script, its trainer and a worker; the trainer was stopped at step 50 and has ended.
class GuardAftermathTest : public testing::Test {
 protected:
  GuardAftermathTest() {
    after_.see(std::vector{kTrainer}, 49);
    after_.acted(std::vector{kScript, kTrainer, kWorker});
    after_.see(std::vector{kTrainer}, 50);
    after_.stood_down();
  }
  void ticks(int count, std::int64_t step) {
    for (int i = 0; i < count; ++i) {
      after_.see({}, step);
    }
  }

  GuardAftermath after_;
};

TEST(GuardAftermath, NobodyIsStoppedBeforeTheGuardActs) {
  GuardAftermath after;
  after.stood_down();  // of a dry run
  after.see(std::vector{kTrainer}, 1);
  EXPECT_FALSE(after.is_stopped());
}

TEST_F(GuardAftermathTest, AScriptThatOnlyCleansUpWasStopped) {
  ticks(100, 50);
  EXPECT_TRUE(after_.is_stopped());
}

TEST_F(GuardAftermathTest, AnotherTrainerGoesOnByItself) {
  after_.see(std::vector{kSecond}, 50);
  EXPECT_FALSE(after_.is_stopped());
}

TEST_F(GuardAftermathTest, AnotherStepGoesOnByItself) {
  ticks(2, 50);
  EXPECT_TRUE(after_.is_stopped());
  ticks(1, 1);
  EXPECT_FALSE(after_.is_stopped());
}

TEST_F(GuardAftermathTest, LateStepsAreOfTheTrainerThatHasEnded) {
  ticks(1, 51);
  ticks(50, 52);
  EXPECT_TRUE(after_.is_stopped());
}

TEST_F(GuardAftermathTest, ATickFromBeforeItsEndAndAnOrphanAreNobodyNew) {
  after_.see(std::vector{kTrainer}, 50);
  after_.see(std::vector{kWorker}, 50);
  EXPECT_TRUE(after_.is_stopped());
}

TEST_F(GuardAftermathTest, WhileTheTrainerSavesItselfNobodyGoesOn) {
  GuardAftermath after;
  after.acted(std::vector{kScript, kTrainer});
  for (std::int64_t step = 50; step < 60; ++step) {
    after.see(std::vector{kTrainer, kSecond}, step);
  }
  EXPECT_TRUE(after.is_stopped());
}

TEST_F(GuardAftermathTest, TheNextOneMayBeStoppedToo) {
  after_.see(std::vector{kSecond}, 1);
  after_.acted(std::vector{kScript, kSecond});
  EXPECT_TRUE(after_.is_stopped());
  after_.stood_down();
  ticks(100, 9);
  EXPECT_TRUE(after_.is_stopped());
}

}  // namespace
}  // namespace tidemark::guard
