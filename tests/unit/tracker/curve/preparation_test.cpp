// SPDX-License-Identifier: Apache-2.0
// From a series to its floor: axis, dips, teardown, excursions, blocks, allowance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/tracker/curves.h"
#include "tracker/curve/allowance.h"
#include "tracker/curve/curve.h"
#include "tracker/curve/cycles.h"
#include "tracker/curve/floor.h"
#include "tracker/curve/settling.h"

namespace tidemark::tracker {
namespace {

using test::kMb;
using test::on_steps;
using test::on_time;
using test::Points;

TEST(Curve, IsJudgedOnStepsWhereTheyAreKnown) {
  Series series;
  series.add(0.0, kUnknown, 1.0);  // before the first step
  for (int i = 0; i < 8; ++i) {
    series.add(10.0 + i, i, 2.0);
  }
  series.add(50.0, kUnknown, 3.0);  // after the last
  const Curve curve = prepare(series);

  EXPECT_EQ(curve.axis, Axis::kSteps);
  ASSERT_EQ(curve.points.size(), 8U);
  EXPECT_EQ(curve.points.front().x, 0.0);
  EXPECT_EQ(curve.points.back().t_s, 17.0);
}

TEST(Curve, IsJudgedOnTimeWhenStepsAreFew) {
  Series series;
  for (int i = 0; i < 20; ++i) {
    series.add(i, i / 10, 2.0);
  }
  EXPECT_EQ(prepare(series).axis, Axis::kTime);
}

TEST(Curve, JoinsSamplesOfOnePlace) {
  Series series;
  series.add(1.0, kUnknown, 10.0);
  series.add(1.0, kUnknown, 30.0);
  const Curve curve = prepare(series);

  ASSERT_EQ(curve.points.size(), 1U);
  EXPECT_EQ(curve.points[0].min_bytes, 10.0);
  EXPECT_EQ(curve.points[0].max_bytes, 30.0);
  EXPECT_EQ(curve.points[0].mean_bytes, 20.0);
}

TEST(Curve, WhatIsLessThanANanosecondApartIsOnePlace) {
  Series series;
  series.add(0.0, kUnknown, 100.0);
  series.add(5e-324, kUnknown, 200.0);
  series.add(1.0, kUnknown, 300.0);

  const Curve curve = prepare(series);

  ASSERT_EQ(curve.points.size(), 2U);
  EXPECT_EQ(curve.points[0].max_bytes, 200.0);
}

TEST(Curve, AStepCounterThatStartsAgainIsNoAxis) {
  Series series;
  for (int i = 0; i < 100; ++i) {
    series.add(i, i % 10, 2.0);
  }
  const Curve curve = prepare(series);
  EXPECT_EQ(curve.axis, Axis::kTime);
  EXPECT_EQ(curve.points.size(), 100U);
}

TEST(Curve, RepairsOneSampleThatMissedAProcess) {
  Points points = test::sampled(100, 0.0, [](double) { return 1000.0; });
  points[40].second = 300.0;
  const Curve curve = prepare(on_time(points));

  EXPECT_EQ(curve.dips_repaired, 1U);
  EXPECT_EQ(curve.points[40].min_bytes, 1000.0 * kMb);
}

TEST(Curve, KeepsDipsThatHappenOften) {
  Points points =
      test::sampled(100, 0.0, [](double t) { return std::fmod(t, 10.0) == 5.0 ? 300.0 : 1000.0; });
  EXPECT_EQ(prepare(on_time(points)).dips_repaired, 0U);
}

TEST(Curve, CutsOffTheTeardown) {
  const Points points =
      test::sampled(200, 1.0, [](double t) { return t < 196.0 ? 1000.0 : 200.0; });
  const Curve curve = prepare(on_time(points));

  ASSERT_TRUE(curve.teardown);
  EXPECT_EQ(curve.points.size(), 196U);
  EXPECT_NEAR(curve.teardown->growth_bytes, -800.0 * kMb, 10.0 * kMb);
}

TEST(Curve, CutsOffATeardownThatTakesSeveralSamples) {
  const Points points = test::sampled(200, 1.0, [](double t) {
    return t < 195.0 ? 500.0 + 5.0 * t : std::max(1.0, 1475.0 - 300.0 * (t - 194.0));
  });
  const Curve curve = prepare(on_time(points));

  ASSERT_TRUE(curve.teardown);
  EXPECT_EQ(curve.points.size(), 195U);
  EXPECT_NEAR(curve.teardown->growth_bytes, -1470.0 * kMb, 10.0 * kMb);
}

// The gate of a CI job judges runs of a few seconds.
TEST(Curve, CutsOffTheTeardownOfAShortRun) {
  const Points points =
      test::sampled(12, 1.0, [](double t) { return t < 11.0 ? 100.0 + 10.0 * t : 90.0; });
  const Curve curve = prepare(on_time(points));

  ASSERT_TRUE(curve.teardown);
  EXPECT_EQ(curve.points.size(), 11U);
}

TEST(Curve, SparesNoPointOfAVeryShortRun) {
  const Points points = test::sampled(5, 1.0, [](double t) { return t < 4.0 ? 100.0 : 50.0; });

  EXPECT_FALSE(prepare(on_time(points)).teardown);
}

TEST(Curve, AFinalFallLikeManyBeforeIsNoTeardown) {
  const Points points =
      test::sampled(200, 1.0, [](double t) { return 1000.0 + 20.0 * std::fmod(t, 40.0); });
  Points cut = test::prefix(points, 163);  // ends three samples after a fall
  EXPECT_FALSE(prepare(on_time(cut)).teardown);
}

TEST(Cycles, FindsTheTeethOfASaw) {
  const Points points =
      test::sampled(200, 1.0, [](double t) { return 1000.0 + 20.0 * std::fmod(t, 40.0); });
  const Cycles cycles = find_cycles(prepare(on_time(points)));

  EXPECT_EQ(cycles.excursions.size(), 4U);  // the fifth has not come back
  EXPECT_NEAR(cycles.height_bytes, 780.0 * kMb, 10.0 * kMb);
  ASSERT_TRUE(cycles.period);
  EXPECT_NEAR(*cycles.period, 40.0, 1.0);
}

TEST(Cycles, FindsRareSpikes) {
  const Points points = test::sampled(
      500, 5.0, [](double t) { return t == 100.0 || t == 307.0 || t == 350.0 ? 2000.0 : 1000.0; });
  const Cycles cycles = find_cycles(prepare(on_time(points)));

  EXPECT_EQ(cycles.excursions.size(), 3U);
  EXPECT_FALSE(cycles.period);
}

TEST(Cycles, NoiseIsNone) {
  const Points points = test::sampled(1000, 30.0, [](double) { return 1000.0; });
  EXPECT_TRUE(find_cycles(prepare(on_time(points))).excursions.empty());
}

TEST(Cycles, WanderingNoiseIsNone) {
  test::TestNoise noise(3);
  double level = 0.0;
  Points points;
  for (int i = 0; i < 1000; ++i) {
    level = 0.9 * level + 10.0 * noise.next();
    points.emplace_back(i, 1000.0 + level);
  }
  EXPECT_TRUE(find_cycles(prepare(on_time(points))).excursions.empty());
}

TEST(Cycles, GrowthThatStaysIsNone) {
  const Points points = test::sampled(100, 1.0, [](double t) { return 1000.0 + 10.0 * t; });
  EXPECT_TRUE(find_cycles(prepare(on_time(points))).excursions.empty());
}

TEST(Floor, IsTheLowestOfEachBlock) {
  const Points points =
      test::sampled(480, 0.0, [](double t) { return std::fmod(t, 10.0) == 4.0 ? 900.0 : 1000.0; });
  const Curve curve = prepare(on_time(points));
  const Floor floor = make_floor(curve, Cycles{});

  ASSERT_EQ(floor.points.size(), Floor::kMostBlocks);
  for (const FloorPoint& point : floor.points) {
    EXPECT_EQ(point.floor_bytes, 900.0 * kMb);
    EXPECT_EQ(point.ceiling_bytes, 1000.0 * kMb);
  }
}

TEST(Floor, ABlockIsLongerThanATooth) {
  const Points points =
      test::sampled(400, 1.0, [](double t) { return 1000.0 + 20.0 * std::fmod(t, 40.0); });
  const Curve curve = prepare(on_time(points));
  const Floor floor = make_floor(curve, find_cycles(curve));

  EXPECT_GE(floor.block_width, 40.0);
  EXPECT_GE(floor.points.size(), 4U);
  for (const FloorPoint& point : floor.points) {
    EXPECT_NEAR(point.floor_bytes, 1000.0 * kMb, 10.0 * kMb);
  }
}

TEST(Floor, GapsHaveNoPoints) {
  Points points;
  for (int i = 0; i < 200; ++i) {
    points.emplace_back(i < 100 ? i : i + 1000, 500.0);
  }
  const Curve curve = prepare(on_time(points));
  const Floor floor = make_floor(curve, Cycles{});

  EXPECT_LT(floor.points.size(), 12U);
  EXPECT_GE(floor.points.size(), 8U);
}

Curve minutes_and_steps(double seconds_per_step, int count) {
  Series series;
  for (int i = 0; i < count; ++i) {
    series.add(i * seconds_per_step, i, 1e9);
  }
  return prepare(series);
}

TEST(Allowance, AutomaticWaitsForBothTimeAndSteps) {
  const Curve fast = minutes_and_steps(0.5, 10'000);  // half an hour is 3,600 steps
  EXPECT_NEAR(allowance_of(fast, pace_of(fast), {}).end, 3600.0, 3.0);
  const Curve slow = minutes_and_steps(60.0, 1000);  // 500 steps are more than half an hour
  EXPECT_NEAR(allowance_of(slow, pace_of(slow), {}).end, 500.0, 1.0);
}

TEST(Allowance, OneEpochAndAQuarterWhenEpochsAreMarked) {
  const Curve curve = minutes_and_steps(1.0, 1000);
  Options options;
  options.epoch_steps = 80.0;
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace_of(curve), options).end, 100.0);
}

TEST(Allowance, WhatAProcessHasLivedAlreadyCounts) {
  const Curve curve = prepare(on_time(test::sampled(100, 0.0, [](double) { return 1.0; })));
  Options options = test::with_warmup_seconds(60.0);
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace_of(curve), options).end, 60.0);
  options.age_at_start_s = 50.0;
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace_of(curve), options).end, 10.0);
  options.age_at_start_s = 500.0;
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace_of(curve), options).end, 0.0);
}

TEST(Allowance, StepsThatAProcessHasDoneAlreadyCount) {
  const Curve curve = minutes_and_steps(2.0, 2000);
  const Pace pace = pace_of(curve);
  Options options;
  options.warmup.steps = 200.0;
  options.steps_at_start = 150.0;
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace, options).end, 200.0) << "its age is not known";
  options.age_at_start_s = 3600.0;
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace, options).end, 50.0);
  options.age_at_start_s = 100.0;
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace, options).end, 150.0) << "it is as old as 50 steps";
  options.steps_at_start.reset();
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace, options).end, 200.0) << "it did not train before";
}

TEST(Allowance, TheTimeOfStepsThatWereDoneAlreadyCounts) {
  const Curve curve = minutes_and_steps(2.0, 2000);
  const Pace pace = pace_of(curve);
  Options options;
  options.age_at_start_s = 7200.0;
  options.steps_at_start = 600.0;  // 20 minutes of the half hour
  EXPECT_NEAR(allowance_of(curve, pace, options).end, 300.0, 1.0);
  options.steps_at_start = 12'000.0;
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace, options).end, 0.0);
  options.steps_at_start = 90.0;
  options.epoch_steps = 80.0;
  EXPECT_DOUBLE_EQ(allowance_of(curve, pace, options).end, 10.0);
}

TEST(Allowance, LeastRateIsAShareOfTheFloor) {
  const Curve time = prepare(on_time(test::sampled(100, 0.0, [](double) { return 1.0; })));
  EXPECT_DOUBLE_EQ(least_rate(pace_of(time), {}, 7200.0), 0.01);  // 0.5 % per hour
  const Curve steps = prepare(on_steps(test::sampled(100, 0.0, [](double) { return 1.0; })));
  EXPECT_DOUBLE_EQ(least_rate(pace_of(steps), {}, 2000.0), 0.01);  // per 1,000 steps
  Options options;
  options.min_leak = Rate{60.0, RateUnit::kSecond, 60.0};
  EXPECT_DOUBLE_EQ(least_rate(pace_of(time), options, 7200.0), 1.0);
}

TEST(StillSince, FindsThePlateau) {
  const std::vector<double> x{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<double> y{100, 200, 300, 400, 500, 500, 500, 500, 500, 500};
  EXPECT_EQ(still_since(x, y), std::optional<std::size_t>(4));
}

TEST(StillSince, TwoPointsSufficeWhenTheySpanHalf) {
  const std::vector<double> x{0, 1, 2, 3, 4, 10};
  const std::vector<double> y{100, 200, 300, 400, 500, 500};
  EXPECT_EQ(still_since(x, y), std::optional<std::size_t>(4));
}

TEST(StillSince, NotWhileItClimbs) {
  const std::vector<double> x{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<double> y;
  for (const double place : x) {
    y.push_back(100.0 + 20.0 * place);
  }
  EXPECT_FALSE(still_since(x, y));
}

}  // namespace
}  // namespace tidemark::tracker
