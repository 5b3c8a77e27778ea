// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidemark::tracker {
namespace {

TEST(Statistics, MedianOfOddEvenAndNothing) {
  EXPECT_EQ(median({3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median({4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_EQ(median({}), 0.0);
}

TEST(Statistics, RobustSigmaIgnoresWildValues) {
  // Distances from the median 3: 2 1 0 1 997, their median 1.
  EXPECT_DOUBLE_EQ(robust_sigma({1.0, 2.0, 3.0, 4.0, 1000.0}), 1.4826);
}

TEST(Statistics, LineThroughThreePoints) {
  const std::vector<double> x{0.0, 1.0, 2.0};
  const std::vector<double> y{1.0, 2.0, 6.0};
  // Means 1 and 3; slope ((-1)(-2) + 0 + (1)(3)) / 2 = 2.5.
  const Line line = fit_line(x, y);
  EXPECT_DOUBLE_EQ(line.slope, 2.5);
  EXPECT_DOUBLE_EQ(line.value(1.0), 3.0);
}

TEST(Statistics, LineOfOnePlaceIsFlat) {
  const std::vector<double> x{2.0, 2.0};
  const std::vector<double> y{1.0, 3.0};
  EXPECT_EQ(fit_line(x, y).slope, 0.0);
}

TEST(Statistics, TheilSenIsNotMovedByOneWildPoint) {
  const std::vector<double> x{0.0, 1.0, 2.0, 3.0, 4.0, 5.0};
  const std::vector<double> y{0.0, 2.0, 4.0, 600.0, 8.0, 10.0};
  EXPECT_DOUBLE_EQ(theil_sen(x, y).slope, 2.0);
  EXPECT_DOUBLE_EQ(theil_sen(x, y).value(5.0), 10.0);
}

TEST(Statistics, NoiseThatWandersTellsLess) {
  std::vector<double> alternating;
  std::vector<double> wandering;
  for (int i = 0; i < 40; ++i) {
    alternating.push_back(i % 2 == 0 ? 1.0 : -1.0);
    wandering.push_back(i / 10 % 2 == 0 ? 1.0 : -1.0);
  }
  const Noise independent = noise_of(alternating, 0, 0.0);
  const Noise slow = noise_of(wandering, 0, 0.0);

  EXPECT_DOUBLE_EQ(independent.sigma, 1.0);
  EXPECT_DOUBLE_EQ(independent.long_run, 1.0);
  EXPECT_DOUBLE_EQ(independent.effective, 40.0);
  EXPECT_DOUBLE_EQ(slow.sigma, 1.0);
  EXPECT_GT(slow.long_run, 3.0);
  EXPECT_LT(slow.effective, 4.0);
}

TEST(Statistics, NoNoiseIsBelowTheLeast) {
  EXPECT_EQ(noise_of(std::vector<double>{0.0, 0.0, 0.0}, 1, 0.5).sigma, 0.5);
}

TEST(Statistics, FewDegreesOfFreedomNeedMoreSigmas) {
  EXPECT_DOUBLE_EQ(significance_bar(2.0), 9.9);
  EXPECT_DOUBLE_EQ(significance_bar(-3.0), 64.0);
  EXPECT_NEAR(significance_bar(1e9), 3.29, 0.01);
  for (double freedom = 1.0; freedom < 100.0; freedom += 0.5) {
    EXPECT_GE(significance_bar(freedom), significance_bar(freedom + 0.5));
    EXPECT_GE(interval_width(freedom), interval_width(freedom + 0.5));
  }
}

}  // namespace
}  // namespace tidemark::tracker
