// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/prefixes.h"

#include <cmath>

#include <gmock/gmock.h>

#include "tracker/curve/judge.h"

namespace tidemark::bench {
namespace {

double growth_between(const Curve& curve, double from_s, double to_s) {
  return trend_bytes(curve.recipe, to_s) - trend_bytes(curve.recipe, from_s);
}

TEST(SettlingRuns, AreTheSameForTheSameNumbers) {
  const Curve one = generate_settling(1, 7);
  const Curve two = generate_settling(1, 7);
  ASSERT_EQ(one.points.size(), two.points.size());
  EXPECT_EQ(one.points.back().footprint_bytes, two.points.back().footprint_bytes);
}

TEST(SettlingRuns, GrowAndStop) {
  for (std::uint64_t index = 0; index < 60; ++index) {
    const Curve curve = generate_settling(1, index);
    const double end = curve.truth.warmup_end;
    EXPECT_GT(growth_between(curve, 0.0, end + 1.0), 0.0) << index;
    const double tail = growth_between(curve, end, end + 1e9);
    EXPECT_LE(tail, 0.02 * growth_between(curve, -1.0, end)) << index;
  }
}

TEST(SettlingRuns, DoNothingBeforeTheFirstStepOfAFill) {
  for (std::uint64_t index = 0; index < 60; index += kSettlingKinds) {
    const Curve curve = generate_settling(1, index);
    ASSERT_EQ(settling_at(index), SettlingKind::kIdleThenFill);
    double last_idle = 0.0;
    for (const Point& point : curve.points) {
      if (std::isnan(point.step)) {
        last_idle = point.t_s;
      } else {
        EXPECT_EQ(growth_between(curve, 0.0, last_idle), 0.0) << index;
        break;
      }
    }
  }
}

// Found by many seeds: a rise between two plateaus whose end no line through it sees, and a fill
// whose slow begin under noise looked like a plateau.
TEST(SettlingRuns, AreNoLeakWhereTheyOnceLookedLikeOne) {
  struct Case {
    std::uint64_t seed;
    std::uint64_t index;
    std::size_t points;
  };
  for (const auto& [seed, index, points] :
       {Case{8, 9, 991}, {16, 291, 35}, {16, 291, 41}, {16, 291, 47}}) {
    const Curve curve = generate_settling(seed, index);
    EXPECT_NE(tracker::judge(series_of(curve, points), {}).verdict, tracker::Verdict::kLeak)
        << seed << ' ' << index << ' ' << points;
  }
}

}  // namespace
}  // namespace tidemark::bench
