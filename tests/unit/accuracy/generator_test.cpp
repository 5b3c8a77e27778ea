// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/generator.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>

namespace tidemark::bench {
namespace {

constexpr std::uint64_t kSome = 8 * kFamilyCount;

double first_x(const Curve& curve) { return curve.x(0); }
double last_x(const Curve& curve) { return curve.x(curve.points.size() - 1); }
double share(const Curve& curve, double x) {
  return (x - first_x(curve)) / (last_x(curve) - first_x(curve));
}

TEST(Generator, GivesTheSameCurveForTheSameNumbers) {
  for (std::uint64_t index = 0; index < kFamilyCount; ++index) {
    const Curve one = generate(1, index);
    const Curve two = generate(1, index);
    ASSERT_EQ(one.points.size(), two.points.size());
    for (std::size_t i = 0; i < one.points.size(); ++i) {
      ASSERT_EQ(one.points[i].footprint_bytes, two.points[i].footprint_bytes);
    }
    EXPECT_EQ(one.truth.bound.rate, two.truth.bound.rate);
  }
}

// The published tables stand for these curves: a change here is a change there.
TEST(Generator, GivesTheCurvesOfThePublishedTables) {
  struct Pin {
    std::uint64_t index;
    std::size_t points;
    double last_mb;
    double bound_mb;
  };
  const Pin pins[] = {
      {0, 57, 41514.330703, 19.071393},
      {9, 168, 25698.850875, 19.585627},
      {13, 2784, 99310.854891, 0.054433},
      {27, 33, 3165.478354, 0.231421},
  };
  for (const Pin& pin : pins) {
    const Curve curve = generate(2, pin.index);
    EXPECT_EQ(curve.points.size(), pin.points);
    EXPECT_NEAR(curve.points.back().footprint_bytes / 1e6, pin.last_mb, 1e-3);
    EXPECT_NEAR(curve.truth.bound.rate / 1e6, pin.bound_mb, 1e-3);
  }
}

TEST(Generator, NamesEveryFamilyOnce) {
  std::set<std::string_view> names;
  for (std::uint64_t index = 0; index < kFamilyCount; ++index) {
    const std::string_view name = family_name(family_at(index));
    EXPECT_EQ(family_from_name(name), family_at(index));
    names.insert(name);
  }
  EXPECT_EQ(names.size(), kFamilyCount);
  EXPECT_FALSE(family_from_name("no such family"));
}

TEST(Generator, PlacesNeverGoBack) {
  for (std::uint64_t index = 0; index < kSome; ++index) {
    const Curve curve = generate(1, index);
    EXPECT_GE(curve.points.size(), 30U);
    EXPECT_LE(curve.points.size(), 3000U);
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
      ASSERT_GE(curve.x(i), curve.x(i - 1)) << index;
    }
  }
}

TEST(Generator, TheRateIsTheSlopeWithoutNoise) {
  std::size_t leaks = 0;
  for (std::uint64_t index = 0; index < kSome; ++index) {
    const Curve curve = generate(1, index);
    if (!curve.truth.leaks) {
      EXPECT_EQ(curve.truth.rate, 0.0);
      continue;
    }
    ++leaks;
    Recipe quiet = curve.recipe;
    quiet.leak.reset();
    const double end = last_x(curve);
    const double grown = trend_bytes(curve.recipe, end) - trend_bytes(quiet, end);
    const double expected = curve.truth.rate * (end - curve.truth.onset);
    const double stair = curve.truth.rate * curve.recipe.leak->stair_length;
    EXPECT_NEAR(grown, expected, stair + 1e-6 * expected) << index;
  }
  EXPECT_GT(leaks, kSome / 4);
}

TEST(Generator, NothingGrowsAfterTheWarmupWithoutALeak) {
  const std::set<Family> late = {Family::kLateJump, Family::kLongWarmup, Family::kRelease,
                                 Family::kSlowDrift};
  for (std::uint64_t index = 0; index < kSome; ++index) {
    const Curve curve = generate(1, index);
    if (curve.truth.leaks || late.contains(curve.family)) {
      continue;
    }
    EXPECT_LE(share(curve, curve.truth.warmup_end), 0.351) << index;
    const double settled = trend_bytes(curve.recipe, curve.allowance_end);
    const double grown = trend_bytes(curve.recipe, last_x(curve)) - settled;
    const double warmup = settled - curve.recipe.baseline_bytes;
    EXPECT_LE(grown, 0.007 * warmup + 1.0) << index;  // what a saturating one has left
  }
}

TEST(Generator, ASlowDriftStaysBelowTheGate) {
  for (std::uint64_t index = 0; index < kSome; ++index) {
    const Curve curve = generate(1, index);
    if (curve.family == Family::kSlowDrift) {
      EXPECT_FALSE(curve.truth.leaks);
      EXPECT_GT(curve.recipe.leak->rate, 0.0);
      EXPECT_LE(curve.recipe.leak->rate, 0.51 * curve.truth.gate);
    }
  }
}

TEST(Generator, ALeakThatIsDueIsAboveBoundAndGate) {
  for (std::uint64_t index = 0; index < kSome; ++index) {
    const Truth truth = generate(1, index).truth;
    EXPECT_EQ(truth.due, truth.leaks && truth.rate >= 5.0 * truth.bound.rate &&
                             truth.rate >= 1.1 * truth.gate);
    EXPECT_EQ(truth.right.has(tracker::Verdict::kLeak), truth.leaks);
    EXPECT_FALSE(truth.right.has(tracker::Verdict::kGrowing));
    EXPECT_GE(truth.bound.blocks, 3.0);
  }
}

TEST(Generator, RssIsFootprintWithFilesAndWithoutSwap) {
  bool saw_swap = false;
  for (std::uint64_t index = 0; index < kSome; ++index) {
    const Curve curve = generate(1, index);
    for (const Point& point : curve.points) {
      ASSERT_NEAR(point.rss_bytes, point.footprint_bytes - point.swap_bytes + point.rss_file_bytes,
                  1.0);
      saw_swap = saw_swap || point.swap_bytes > 0.0;
    }
    const double file_growth =
        curve.points.back().rss_file_bytes - curve.points.front().rss_file_bytes;
    EXPECT_EQ(file_growth > 0.0, curve.family == Family::kPageCache);
  }
  EXPECT_TRUE(saw_swap);
}

TEST(Generator, TheAllowanceIsFortyPercentOfTheRun) {
  for (std::uint64_t index = 0; index < kFamilyCount; ++index) {
    const Curve curve = generate(1, index);
    EXPECT_NEAR(share(curve, curve.allowance_end), 0.4, 1e-9);
    const tracker::Warmup warmup = options_of(curve).warmup;
    const auto& length = curve.axis == tracker::Axis::kSteps ? warmup.steps : warmup.seconds;
    ASSERT_TRUE(length);
    EXPECT_DOUBLE_EQ(*length, curve.allowance_end - first_x(curve));
  }
}

}  // namespace
}  // namespace tidemark::bench
