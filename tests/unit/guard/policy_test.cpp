// SPDX-License-Identifier: Apache-2.0
#include "guard/policy.h"

#include <gtest/gtest.h>

#include <optional>

namespace tidemark::guard {
namespace {

constexpr std::int64_t kMib = 1LL << 20U;
constexpr std::int64_t kLimit = 1000 * kMib;
constexpr std::int64_t kKept = 100 * kMib;

// A job below a limit of 1000 MiB, of which 100 are to be kept free.
class GuardPolicyTest : public testing::Test {
 protected:
  GuardSight sight(double at_s, std::int64_t free_mib) const {
    GuardSight seen;
    seen.now_ns = static_cast<std::int64_t>(at_s * 1e9);
    seen.headroom = Headroom{free_mib * kMib, kLimit, kKept, 0};
    return seen;
  }
  GuardDecision at(double at_s, std::int64_t free_mib) {
    return policy_.decide(sight(at_s, free_mib));
  }
  GuardDecision leaking(double at_s, std::int64_t free_mib, double low_mib_s, double high_mib_s) {
    GuardSight seen = sight(at_s, free_mib);
    seen.leak =
        LeakRate{low_mib_s * static_cast<double>(kMib), high_mib_s * static_cast<double>(kMib)};
    return policy_.decide(seen);
  }
  GuardDecision pressed(double at_s, std::int64_t free_mib, double percent) {
    GuardSight seen = sight(at_s, free_mib);
    seen.pressure_percent = percent;
    return policy_.decide(seen);
  }
  GuardDecision without_trainers(double at_s, std::int64_t free_mib) {
    GuardSight seen = sight(at_s, free_mib);
    seen.trainers_alive = false;
    return policy_.decide(seen);
  }

  GuardPolicy policy_{{.horizon_ns = 120 * kNsPerSecond, .grace_ns = 30 * kNsPerSecond}};
};

TEST_F(GuardPolicyTest, DoesNothingWhileThereIsRoom) {
  for (double s = 0; s < 10; ++s) {
    EXPECT_EQ(at(s, 500).act, GuardAct::kNothing);
  }
  EXPECT_EQ(policy_.stage(), GuardStage::kWatching);
}

TEST_F(GuardPolicyTest, WarnsOnceBelowTwiceWhatIsKeptFreeAndStopsBelowIt) {
  EXPECT_EQ(at(0, 199).act, GuardAct::kWarn);
  EXPECT_EQ(at(1, 190).act, GuardAct::kNothing);
  EXPECT_EQ(at(2, 100).act, GuardAct::kNothing);

  const GuardDecision stop = at(3, 99);

  EXPECT_EQ(stop.act, GuardAct::kStop);
  EXPECT_EQ(stop.reason, GuardReason::kHeadroom);
  EXPECT_EQ(stop.headroom->free_bytes, 99 * kMib);
}

TEST_F(GuardPolicyTest, SpikesThatComeCloseAreToldOfOnceInTenMinutes) {
  EXPECT_EQ(at(0, 150).act, GuardAct::kWarn);
  for (double s = 10; s < 590; s += 20) {
    EXPECT_EQ(at(s, 500).act, GuardAct::kNothing) << s;
    EXPECT_EQ(at(s + 10, 150).act, GuardAct::kNothing) << s;
  }
  at(599, 500);

  EXPECT_EQ(at(601, 150).act, GuardAct::kWarn);
}

TEST_F(GuardPolicyTest, StopsALeakWhoseLatestForecastIsWithinTheHorizon) {
  // 500 MiB at 4 to 5 MiB/s: in 100 to 125 s.
  EXPECT_NE(leaking(0, 500, 4.0, 5.0).act, GuardAct::kStop);

  // At 4.2 to 5: in 100 to 119 s.
  const GuardDecision stop = leaking(1, 500, 4.2, 5.0);

  EXPECT_EQ(stop.act, GuardAct::kStop);
  EXPECT_EQ(stop.reason, GuardReason::kForecast);
  EXPECT_NEAR(*stop.limit_in_s_low, 100.0, 0.1);
  EXPECT_NEAR(*stop.limit_in_s_high, 119.0, 0.1);
}

TEST_F(GuardPolicyTest, WarnsOfALeakAtTwiceTheHorizon) {
  EXPECT_EQ(leaking(0, 900, 3.0, 9.0).act, GuardAct::kNothing);  // 300 s at the latest
  const GuardDecision warning = leaking(1, 900, 4.0, 9.0);       // 225 s
  EXPECT_EQ(warning.act, GuardAct::kWarn);
  EXPECT_EQ(warning.reason, GuardReason::kForecast);
}

TEST_F(GuardPolicyTest, ALeakThatMayBeNoneDoesNotStopTheJob) {
  EXPECT_EQ(leaking(0, 500, 0.0, 50.0).act, GuardAct::kNothing);
  EXPECT_EQ(leaking(1, 500, -1.0, 50.0).act, GuardAct::kNothing);
}

TEST_F(GuardPolicyTest, StopsWhenEverybodyHasWaitedForMemoryForSeconds) {
  EXPECT_EQ(pressed(0, 150, 60).act, GuardAct::kWarn);
  EXPECT_EQ(pressed(4.9, 150, 60).act, GuardAct::kNothing);

  const GuardDecision stop = pressed(5, 150, 60);

  EXPECT_EQ(stop.act, GuardAct::kStop);
  EXPECT_EQ(stop.reason, GuardReason::kThrashing);
}

TEST_F(GuardPolicyTest, PressureWithoutShortageOrWithAPauseDoesNotStopTheJob) {
  pressed(0, 150, 60);
  pressed(3, 150, 10);  // a pause
  EXPECT_EQ(pressed(6, 150, 60).act, GuardAct::kNothing);
  for (double s = 10; s < 30; ++s) {
    EXPECT_EQ(pressed(s, 600, 90).act, GuardAct::kNothing) << "plenty is free";
  }
}

TEST_F(GuardPolicyTest, KillsWhenTheGraceTimeIsOver) {
  at(0, 90);
  EXPECT_EQ(at(29.9, 90).act, GuardAct::kNothing);

  const GuardDecision kill = at(30, 90);

  EXPECT_EQ(kill.act, GuardAct::kKill);
  EXPECT_EQ(kill.reason, GuardReason::kGraceOver);
}

TEST_F(GuardPolicyTest, KillsAtOnceWhenAQuarterOfTheReserveIsLeft) {
  at(0, 90);
  EXPECT_EQ(at(0.1, 26).act, GuardAct::kNothing);

  const GuardDecision kill = at(0.2, 24);

  EXPECT_EQ(kill.act, GuardAct::kKill);
  EXPECT_EQ(kill.reason, GuardReason::kLastReserve);
}

TEST_F(GuardPolicyTest, AJobThatLeaptIntoTheReserveMayRestThere) {
  EXPECT_EQ(at(0, 20).act, GuardAct::kStop);
  EXPECT_EQ(at(1, 19).act, GuardAct::kNothing);
  EXPECT_EQ(at(2, 11).act, GuardAct::kNothing);

  EXPECT_EQ(at(3, 9).act, GuardAct::kKill) << "half of what was left";
}

TEST_F(GuardPolicyTest, TheLastReserveOfOneLimitIsNotThatOfAnother) {
  at(0, 90);  // a quarter of 100 MiB is its last reserve
  const auto small = [&](double at_s, std::int64_t free_mib) {
    GuardSight seen = sight(at_s, 0);
    seen.headroom = Headroom{free_mib * kMib, 100 * kMib, 20 * kMib, 1};
    return seen;
  };
  EXPECT_EQ(policy_.decide(small(1, 6)).act, GuardAct::kNothing) << "more than 5 are left";
  EXPECT_NEAR(static_cast<double>(policy_.next_look_ns(small(1, 105).headroom)) / 1e6, 10.5, 0.1);

  EXPECT_EQ(policy_.decide(small(2, 4)).act, GuardAct::kKill);
}

TEST_F(GuardPolicyTest, StandsDownWhenTheTrainersHaveEndedAndMemoryIsFree) {
  at(0, 90);
  EXPECT_EQ(without_trainers(1, 90).act, GuardAct::kNothing) << "others still hold it";

  EXPECT_EQ(without_trainers(2, 400).act, GuardAct::kStandDown);
  EXPECT_EQ(policy_.stage(), GuardStage::kWatching);
  EXPECT_EQ(at(3, 99).act, GuardAct::kStop) << "a second trainer is guarded as well";
}

TEST_F(GuardPolicyTest, KillsAgainUntilNobodyIsLeft) {
  at(0, 90);
  at(30, 90);
  EXPECT_EQ(at(30.1, 90).act, GuardAct::kNothing);
  EXPECT_EQ(at(30.3, 90).act, GuardAct::kKill);

  GuardSight seen = sight(31, 90);
  seen.tree_alive = false;
  EXPECT_EQ(policy_.decide(seen).act, GuardAct::kNothing);
  EXPECT_EQ(policy_.stage(), GuardStage::kDone);
  EXPECT_EQ(at(40, 1).act, GuardAct::kNothing);
}

TEST_F(GuardPolicyTest, WithoutAReadableLimitNothingIsDone) {
  GuardSight seen;
  seen.leak = LeakRate{1e12, 2e12};
  seen.pressure_percent = 100;
  EXPECT_EQ(policy_.decide(seen).act, GuardAct::kNothing);
}

TEST_F(GuardPolicyTest, LooksTheMoreOftenTheNearerTheLimitIs) {
  const auto wait_ms = [&](std::int64_t free_mib) {
    return static_cast<double>(policy_.next_look_ns(sight(0, free_mib).headroom)) / 1e6;
  };
  EXPECT_DOUBLE_EQ(wait_ms(100'000), 500.0);
  EXPECT_NEAR(wait_ms(1100), 104.9, 0.1);  // 1000 MiB at 10 MB per ms
  EXPECT_NEAR(wait_ms(200), 10.5, 0.1);
  EXPECT_DOUBLE_EQ(wait_ms(101), 2.0);
  EXPECT_DOUBLE_EQ(wait_ms(0), 2.0);
}

TEST_F(GuardPolicyTest, InTheGraceTimeTheLastReserveIsWhatCounts) {
  at(0, 99);
  EXPECT_NEAR(static_cast<double>(policy_.next_look_ns(sight(0, 99).headroom)) / 1e6, 7.8, 0.1);
}

TEST(GuardPolicy, TheGraceTimeOfAThrashingMachineIsShort) {
  GuardPolicy policy({.horizon_ns = kNsPerSecond, .grace_ns = 600 * kNsPerSecond});
  GuardSight seen;
  seen.headroom = Headroom{150 * kMib, kLimit, kKept, 0};
  seen.pressure_percent = 80;
  policy.decide(seen);
  seen.now_ns = 5 * kNsPerSecond;
  EXPECT_EQ(policy.decide(seen).act, GuardAct::kStop);

  seen.now_ns = 36 * kNsPerSecond;
  EXPECT_EQ(policy.decide(seen).act, GuardAct::kKill);
}

// Killed at 31 s for the first time, as far as it is told.
class DryRunPolicyTest : public GuardPolicyTest {
 protected:
  DryRunPolicyTest() {
    policy_ = GuardPolicy({.grace_ns = 30 * kNsPerSecond}, true);
    EXPECT_EQ(at(1, 50).act, GuardAct::kStop);
    EXPECT_EQ(at(31, 50).act, GuardAct::kKill);
    EXPECT_EQ(dead(32, 50).act, GuardAct::kNothing);
  }
  GuardDecision dead(double at_s, std::int64_t free_mib) {
    GuardSight seen = sight(at_s, free_mib);
    seen.tree_alive = false;
    return policy_.decide(seen);
  }
};

TEST_F(DryRunPolicyTest, TheNextIncidentIsToldOfAfterTenMinutesAndWithRoomAgain) {
  EXPECT_EQ(dead(100, 500).act, GuardAct::kNothing);
  EXPECT_EQ(dead(600, 50).act, GuardAct::kNothing) << "one incident in ten minutes";
  EXPECT_EQ(dead(700, 500).act, GuardAct::kNothing);
  EXPECT_EQ(policy_.stage(), GuardStage::kWatching);

  EXPECT_EQ(dead(701, 50).act, GuardAct::kStop);
  EXPECT_EQ(at(731, 50).act, GuardAct::kKill);
}

TEST_F(DryRunPolicyTest, WithoutRoomItIsStillTheSameIncident) {
  for (double s = 33; s < 5000; s += 10) {
    EXPECT_EQ(dead(s, 99).act, GuardAct::kNothing) << s;
  }
}

TEST_F(GuardPolicyTest, WhoWasKilledIsDead) {
  at(1, 50);
  EXPECT_EQ(at(31, 50).act, GuardAct::kKill);
  for (double s = 32; s < 5000; s += 10) {
    GuardSight seen = sight(s, s < 2000 ? 500 : 50);
    seen.tree_alive = false;
    EXPECT_EQ(policy_.decide(seen).act, GuardAct::kNothing) << s;
  }
}

}  // namespace
}  // namespace tidemark::guard
