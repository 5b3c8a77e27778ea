// SPDX-License-Identifier: Apache-2.0
#include "monitor/session.h"

#include <gtest/gtest.h>

namespace tidemark::monitor {
namespace {

Rate rate(double bytes, double seconds) { return {bytes, RateUnit::kSecond, seconds}; }

TEST(GrowthWarning, WarnsWhenTheWindowGrowsTooMuch) {
  GrowthWarning warning(rate(200, 10));

  EXPECT_FALSE(warning.add(0, 1000));
  EXPECT_FALSE(warning.add(5, 1100));
  const auto fired = warning.add(8, 1200);

  ASSERT_TRUE(fired);
  EXPECT_EQ(fired->growth_bytes, 200U);
  EXPECT_DOUBLE_EQ(fired->over, 8.0);
}

TEST(GrowthWarning, ForgetsWhatIsOlderThanTheWindow) {
  GrowthWarning warning(rate(200, 10));
  for (int t = 0; t < 1000; ++t) {
    EXPECT_FALSE(warning.add(t, static_cast<std::uint64_t>(19 * t))) << "190 per window";
  }
}

TEST(GrowthWarning, MeasuresFromTheLowestPoint) {
  GrowthWarning warning(rate(200, 10));
  EXPECT_FALSE(warning.add(0, 1000));
  EXPECT_FALSE(warning.add(1, 900));

  EXPECT_TRUE(warning.add(2, 1100));
}

TEST(GrowthWarning, WarnsOncePerWindowOfASteadyClimb) {
  GrowthWarning warning(rate(100, 10));
  int fired = 0;
  for (int t = 0; t <= 100; ++t) {
    fired += warning.add(t, static_cast<std::uint64_t>(20 * t)) ? 1 : 0;
  }

  EXPECT_EQ(fired, 20) << "every 5 s, when another 100 have come";
}

TEST(GrowthWarning, SaysNothingAboutFlatOrFallingMemory) {
  GrowthWarning warning(rate(0, 10));
  EXPECT_FALSE(warning.add(0, 1000));
  EXPECT_FALSE(warning.add(1, 1000));
  EXPECT_FALSE(warning.add(2, 10));
}

TEST(GrowthWarning, ForgetsItsWindowWhenTimeGoesBackwards) {
  GrowthWarning warning(rate(100, 10));
  EXPECT_FALSE(warning.add(6, 1000));
  EXPECT_FALSE(warning.add(1, 1200)) << "another epoch's first step";
  EXPECT_TRUE(warning.add(3, 1300));
}

TEST(GrowthWarning, ComparesLooksThatAreFurtherApartThanTheWindow) {
  GrowthWarning warning({100, RateUnit::kStep, 1});
  EXPECT_FALSE(warning.add(10, 1000));
  EXPECT_FALSE(warning.add(20, 1900)) << "90 per step";

  const auto fired = warning.add(30, 2900);

  ASSERT_TRUE(fired);
  EXPECT_EQ(fired->growth_bytes, 1000U);
  EXPECT_DOUBLE_EQ(fired->over, 10.0);
}

TEST(GrowthWarning, DefaultIsFivePercentOfTheLimitPerMinute) {
  const Rate fallback = default_growth_rate(32'000'000'000);
  EXPECT_DOUBLE_EQ(fallback.bytes, 1.6e9);
  EXPECT_DOUBLE_EQ(fallback.per, 60.0);
}

}  // namespace
}  // namespace tidemark::monitor
