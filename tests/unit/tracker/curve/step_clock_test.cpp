// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/step_clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tidemark::tracker {
namespace {

TEST(StepClock, PlacesAMomentBetweenTwoStepsInProportion) {
  StepClock clock;
  clock.mark(10.0, 100);
  clock.mark(14.0, 102);

  EXPECT_DOUBLE_EQ(clock.place_before_last(10.0), 100.0);
  EXPECT_DOUBLE_EQ(clock.place_before_last(13.0), 101.5);
  EXPECT_TRUE(std::isnan(clock.place_before_last(9.9)));
}

TEST(StepClock, CountsOnWhenNumbersStartAnew) {
  StepClock clock;
  for (const int step : {5, 6, 7, 1, 2}) {
    clock.mark(step, step);
  }

  EXPECT_DOUBLE_EQ(clock.last_step(), 9.0);
}

TEST(StepClock, KnowsNothingLongAfterTheLastStep) {
  StepClock clock;
  clock.mark(0.0, 1);
  clock.mark(2.0, 2);
  clock.mark(4.0, 3);

  EXPECT_DOUBLE_EQ(clock.place_after_last(5.5), 3.0);
  EXPECT_TRUE(std::isnan(clock.place_after_last(6.5)));
}

TEST(StepClock, TakesTwoMarkersOfOneInstant) {
  StepClock clock;
  clock.mark(1.0, 1);
  clock.mark(1.0, 2);

  EXPECT_DOUBLE_EQ(clock.place_before_last(1.0), 2.0);
}

TEST(StepClock, KnowsTheStepsBeforeARunThatFindsTheJobTraining) {
  StepClock clock;
  clock.mark(8.0, 12'000);
  EXPECT_EQ(clock.steps_done_before(0.0), std::nullopt) << "how often it marks is not known yet";
  clock.mark(18.0, 12'010);
  clock.mark(28.0, 12'020);

  EXPECT_EQ(clock.steps_done_before(0.0), 12'000.0);
  EXPECT_EQ(clock.steps_done_before(-8.0), std::nullopt) << "that was before it trained";
}

TEST(StepClock, TakesTheLastStepBeforeARunAsDone) {
  StepClock clock;
  clock.mark(-500.0, 7'000);
  clock.mark(30.0, 7'001);

  EXPECT_EQ(clock.steps_done_before(0.0), 7'000.0);
}

TEST(StepClock, CountsNoStepsBeforeAJobThatResumes) {
  StepClock clock;
  clock.mark(60.0, 12'000);
  clock.mark(61.0, 12'001);

  EXPECT_EQ(clock.steps_done_before(0.0), std::nullopt);
}

// A log is read once in a tick: all of its lines have the same time.
TEST(StepClock, TakesALogThatIsReadInTheFirstTickAsRunning) {
  StepClock clock;
  clock.mark(1.0, 500);
  clock.mark(1.0, 501);
  clock.mark(1.1, 502);

  EXPECT_EQ(clock.steps_done_before(0.0), 500.0);
}

}  // namespace
}  // namespace tidemark::tracker
