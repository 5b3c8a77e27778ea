// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/simple_rules.h"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>

namespace tidemark::bench {
namespace {

// One sample per unit of the axis.
bool alarms(bool (*rule)(std::span<const double>, std::span<const double>),
            const std::vector<double>& ys) {
  std::vector<double> xs(ys.size());
  std::iota(xs.begin(), xs.end(), 0.0);
  return rule(xs, ys);
}

TEST(SimpleRules, LeastSquaresWantsAFitAboveOneHalf) {
  EXPECT_TRUE(alarms(least_squares_fits, {0, 2, 1, 3}));   // R² 0.64
  EXPECT_FALSE(alarms(least_squares_fits, {0, 3, 1, 2}));  // R² 0.16
  EXPECT_FALSE(alarms(least_squares_fits, {3, 2, 1, 0}));
  EXPECT_FALSE(alarms(least_squares_fits, {1, 1, 1, 1}));
}

TEST(SimpleRules, LeastSquaresWantsARiseAboveATenth) {
  EXPECT_TRUE(alarms(least_squares_rises, {100, 106, 112}));
  EXPECT_FALSE(alarms(least_squares_rises, {100, 104, 108}));
}

TEST(SimpleRules, MannKendallKnowsHowManySamplesItTakes) {
  EXPECT_TRUE(alarms(mann_kendall, {1, 2, 3, 4, 5, 6}));  // S 15, variance 28.33, z 2.63
  EXPECT_FALSE(alarms(mann_kendall, {1, 2, 3, 4, 5}));    // S 10, variance 16.67, z 2.20
  EXPECT_FALSE(alarms(mann_kendall, {6, 5, 4, 3, 2, 1}));
  EXPECT_FALSE(alarms(mann_kendall, {1, 1, 1, 1, 1, 1}));
}

TEST(SimpleRules, MannKendallCorrectsForTies) {
  // S 30; variance 165 without the correction (z 2.26), 120 with it (z 2.65).
  EXPECT_TRUE(alarms(mann_kendall, {1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}));
  // S 25, variance 91.67, z 2.51.
  EXPECT_FALSE(alarms(mann_kendall, {1, 1, 1, 1, 1, 2, 2, 2, 2, 2}));
}

TEST(SimpleRules, MannKendallOfTheSecondHalfForgetsTheFirst) {
  const std::vector<double> warmup = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9};
  EXPECT_TRUE(alarms(mann_kendall, warmup));
  EXPECT_FALSE(alarms(mann_kendall_second_half, warmup));
  EXPECT_TRUE(alarms(mann_kendall_second_half, {9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6}));
}

TEST(SimpleRules, FirstAgainstLastMinimumWantsAHundredMegabytes) {
  std::vector<double> ys(40, 6200e6);
  ys[3] = 6000e6;
  ys[35] = 6050e6;
  EXPECT_FALSE(alarms(first_against_last_minimum, ys));
  ys[35] = 7000e6;
  EXPECT_TRUE(alarms(first_against_last_minimum, ys));
  ys[20] = 0.0;  // neither among the first nor among the last
  EXPECT_TRUE(alarms(first_against_last_minimum, ys));
  EXPECT_TRUE(alarms(first_against_last_minimum, {0, 0, 0, 150e6, 140e6, 130e6}));
  EXPECT_FALSE(alarms(first_against_last_minimum, {0, 0, 0, 150e6, 140e6, 90e6}));
}

TEST(SimpleRules, TheilSenWantsTwoPercentInTheSecondHalf) {
  EXPECT_TRUE(alarms(theil_sen_second_half, {0, 0, 0, 0, 100, 101, 102, 103}));
  EXPECT_FALSE(alarms(theil_sen_second_half, {0, 0, 0, 0, 100, 100.5, 101, 101.5}));
}

TEST(SimpleRules, TheilSenIgnoresAnOutlier) {
  EXPECT_FALSE(alarms(theil_sen_second_half, {0, 0, 0, 0, 0, 0, 100, 100, 100, 100, 100, 500}));
}

TEST(SimpleRules, TheilSenTakesLongCurvesToo) {
  std::vector<double> ys(3000, 1e9);
  EXPECT_FALSE(alarms(theil_sen_second_half, ys));
  for (std::size_t i = 0; i < ys.size(); ++i) {
    ys[i] += 1e5 * static_cast<double>(i);
  }
  EXPECT_TRUE(alarms(theil_sen_second_half, ys));
}

}  // namespace
}  // namespace tidemark::bench
