// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/bound.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

namespace tidemark::bench {
namespace {

std::vector<double> places(std::size_t count) {
  std::vector<double> xs(count);
  std::iota(xs.begin(), xs.end(), 0.0);
  return xs;
}

TEST(BlockLength, IsATwentiethButEightSamplesOrMore) {
  EXPECT_DOUBLE_EQ(block_length(places(2001), 0.0), 100.0);
  EXPECT_DOUBLE_EQ(block_length(places(121), 0.0), 8.0);
}

TEST(BlockLength, LeavesTwelveBlocksOfAShortCurve) {
  EXPECT_DOUBLE_EQ(block_length(places(37), 0.0), 3.0);
}

TEST(BlockLength, HoldsAPeriod) { EXPECT_DOUBLE_EQ(block_length(places(2001), 150.0), 150.0); }

// The smallest of 8 standard normal values has the standard deviation 0.6107.
TEST(DetectionBound, KnowsTheFloorOfWhiteNoise) {
  Recipe recipe;
  recipe.noise.sigma_bytes = 10.0;
  Random random(1);
  const Bound bound = detection_bound(recipe, places(128), 0.0, random, 4000);
  EXPECT_EQ(bound.blocks, 16.0);
  EXPECT_DOUBLE_EQ(bound.block_length, 8.0);
  EXPECT_NEAR(bound.sigma_bytes, 6.107, 0.25);
  EXPECT_NEAR(bound.rate, 4.0 * bound.sigma_bytes * std::sqrt(12.0 / (16.0 * 16.0 * 16.0)) / 8.0,
              1e-9);
}

TEST(DetectionBound, CountsBlocksAfterTheWindowBegins) {
  Recipe recipe;
  recipe.noise.sigma_bytes = 10.0;
  Random random(1);
  EXPECT_EQ(detection_bound(recipe, places(128), 64.0, random).blocks, 8.0);
}

TEST(DetectionBound, IsHigherWhereNoiseIsCorrelated) {
  Recipe recipe;
  recipe.noise.sigma_bytes = 10.0;
  Random random(1);
  const double white = detection_bound(recipe, places(160), 0.0, random, 1000).rate;
  recipe.noise.correlation = 0.9;
  EXPECT_GT(detection_bound(recipe, places(160), 0.0, random, 1000).rate, 2.0 * white);
}

}  // namespace
}  // namespace tidemark::bench
