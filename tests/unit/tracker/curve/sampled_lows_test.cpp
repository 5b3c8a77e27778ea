// SPDX-License-Identifier: Apache-2.0
// A saw falls in an instant and climbs at once again: where its samples catch it is chance, and its
// lows look different though they are all the same.
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include "tests/unit/tracker/curves.h"
#include "tracker/curve/curve.h"
#include "tracker/curve/cycles.h"
#include "tracker/curve/floor.h"
#include "tracker/curve/judge.h"

namespace tidemark::tracker {
namespace {

using test::on_steps;
using test::Points;
using test::TestNoise;

constexpr double kTooth = 40.0;  // steps
constexpr double kClimb = 2.5;   // MB a step

struct Saw {
  double steps = 400.0;
  double growth = 0.0;         // of the floor, MB a step
  double unseen_tooth = -1.0;  // the samples around the low that begins this tooth are missing
};

// A sample every two or three steps, never at the same place of a tooth.
Points sample(const Saw& saw, std::uint64_t seed) {
  TestNoise noise(seed);
  Points points;
  for (double at = 1.0 + std::abs(noise.next()); at < saw.steps;
       at += 2.3 + 0.3 * std::abs(noise.next())) {
    const double step = std::floor(at);
    const double since_low = std::fmod(step, kTooth);
    const double from_unseen = step - saw.unseen_tooth * kTooth;
    if (from_unseen > -6.0 && from_unseen < 14.0) {
      continue;
    }
    points.emplace_back(step, 66.0 + kClimb * since_low + saw.growth * step + 0.1 * noise.next());
  }
  return points;
}

TEST(SampledLows, LowsThatWereCaughtByChanceAreAFlatFloor) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const SeriesVerdict reading = judge(on_steps(sample({}, seed)), test::with_warmup_steps(110.0));
    EXPECT_EQ(reading.verdict, Verdict::kSpikes) << seed;
    EXPECT_FALSE(reading.undetermined) << seed;
  }
}

TEST(SampledLows, ALowThatWasMissedIsNoGrowth) {
  for (const double tooth : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Saw saw{400.0, 0.0, tooth};
      const SeriesVerdict reading =
          judge(on_steps(sample(saw, seed)), test::with_warmup_steps(110.0));
      EXPECT_EQ(reading.verdict, Verdict::kSpikes) << tooth << ' ' << seed;
    }
  }
}

TEST(SampledLows, AFloorThatRisesByMoreThanChanceIsALeak) {
  for (const double missed : {-1.0, 9.0}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Saw saw{1200.0, 0.2, missed};
      const SeriesVerdict reading =
          judge(on_steps(sample(saw, seed)), test::with_warmup_steps(110.0));
      EXPECT_EQ(reading.verdict, Verdict::kLeak) << missed << ' ' << seed;
    }
  }
}

TEST(SampledLows, DoubtIsHowFarTheCurveMovesBesideTheLow) {
  const auto doubt = [](const Points& points) {
    return doubt_about_low(prepare(on_steps(points)).points, 1) / test::kMb;
  };
  EXPECT_DOUBLE_EQ(doubt({{10, 160}, {12, 70}, {14, 75}}), 5.0);
  EXPECT_DOUBLE_EQ(doubt({{2, 160}, {12, 70}, {14, 75}}), 25.0);  // the fall was seen late
  EXPECT_DOUBLE_EQ(doubt({{10, 75}, {12, 70}, {22, 160}}), 25.0);
  EXPECT_DOUBLE_EQ(doubt({{10, 160}, {12, 70}, {14, 70}}), 0.0);  // a floor was reached
  EXPECT_DOUBLE_EQ(doubt({{10, 60}, {12, 70}, {14, 75}}), 0.0);   // no low at all
  EXPECT_DOUBLE_EQ(doubt({{2, 71}, {12, 70}, {14, 75}}), 1.0);    // no more than it fell
}

TEST(SampledLows, ABlockThatMissedItsLowJoinsTheOneBefore) {
  const Curve whole = prepare(on_steps(sample({}, 3)));
  const Curve missed = prepare(on_steps(sample({400.0, 0.0, 5.0}, 3)));

  const Floor floor = make_floor(missed, find_cycles(missed));

  EXPECT_EQ(floor.points.size() + 1, make_floor(whole, find_cycles(whole)).points.size());
  EXPECT_EQ(floor.points.size(), floor.x.size());
  EXPECT_EQ(floor.points.size(), floor.starts.size());
  for (const double bytes : floor.bytes) {
    EXPECT_LT(bytes, 75.0 * test::kMb);
  }
}

}  // namespace
}  // namespace tidemark::tracker
