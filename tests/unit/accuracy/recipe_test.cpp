// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/recipe.h"

#include <algorithm>
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

TEST(Recipe, ARampEndsWhereItSays) {
  Recipe recipe;
  recipe.baseline_bytes = 100.0;
  recipe.ramps.push_back({10.0, 30.0, 40.0, 0.0});
  EXPECT_EQ(trend_bytes(recipe, 10.0), 100.0);
  EXPECT_EQ(trend_bytes(recipe, 20.0), 120.0);
  EXPECT_EQ(trend_bytes(recipe, 30.0), 140.0);
  EXPECT_EQ(trend_bytes(recipe, 99.0), 140.0);
}

TEST(Recipe, ASaturatingRampApproachesItsHeight) {
  Recipe recipe;
  recipe.ramps.push_back({0.0, 10.0, 100.0, 5.0});
  EXPECT_NEAR(trend_bytes(recipe, 10.0), 100.0 * (1.0 - std::exp(-5.0)), 1e-9);
  EXPECT_NEAR(trend_bytes(recipe, 100.0), 100.0, 1e-9);
}

TEST(Recipe, AJumpStays) {
  Recipe recipe;
  recipe.baseline_bytes = 10.0;
  recipe.jumps = {{5.0, 3.0}, {7.0, -1.0}};
  EXPECT_EQ(trend_bytes(recipe, 4.9), 10.0);
  EXPECT_EQ(trend_bytes(recipe, 5.0), 13.0);
  EXPECT_EQ(trend_bytes(recipe, 8.0), 12.0);
}

TEST(Recipe, EveryFormOfLeakHasItsMeanRate) {
  const Leak line{LeakForm::kLine, 100.0, 300.0, 2.0, 0.0};
  EXPECT_EQ(leaked_bytes(line, 100.0), 0.0);
  EXPECT_EQ(leaked_bytes(line, 200.0), 200.0);
  const Leak stairs{LeakForm::kStairs, 100.0, 300.0, 2.0, 50.0};
  EXPECT_EQ(leaked_bytes(stairs, 149.0), 0.0);
  EXPECT_EQ(leaked_bytes(stairs, 151.0), 100.0);
  EXPECT_EQ(leaked_bytes(stairs, 300.0), 400.0);
  const Leak faster{LeakForm::kAccelerating, 100.0, 300.0, 2.0, 0.0};
  EXPECT_DOUBLE_EQ(leaked_bytes(faster, 300.0), 400.0);
  EXPECT_LT(leaked_bytes(faster, 200.0), 200.0);
}

TEST(Recipe, NoiseHasItsSpreadAndItsCorrelation) {
  Recipe recipe;
  recipe.noise = {5.0, 0.8};
  Random random(1);
  const std::vector<double> noise = disturbance(recipe, places(50'000), random);
  double squares = 0.0;
  double products = 0.0;
  for (std::size_t i = 1; i < noise.size(); ++i) {
    squares += noise[i] * noise[i];
    products += noise[i] * noise[i - 1];
  }
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(noise.size())), 5.0, 0.2);
  EXPECT_NEAR(products / squares, 0.8, 0.02);
}

TEST(Recipe, WavesComeBackToTheFloor) {
  for (const WaveKind kind : {WaveKind::kSawtooth, WaveKind::kPeriodic, WaveKind::kRandom,
                              WaveKind::kWorkerRestart, WaveKind::kPoolComesAndGoes}) {
    Recipe recipe;
    recipe.wave = {kind, 40.0, 5.0, 100.0};
    Random random(2);
    const std::vector<double> wave = disturbance(recipe, places(2000), random);
    for (std::size_t from = 0; from + 400 <= wave.size(); from += 400) {
      const auto part = wave.begin() + static_cast<std::ptrdiff_t>(from);
      EXPECT_LT(*std::min_element(part, part + 400), 5.0) << static_cast<int>(kind);
      EXPECT_GT(*std::max_element(part, part + 400), 60.0) << static_cast<int>(kind);
    }
  }
}

}  // namespace
}  // namespace tidemark::bench
