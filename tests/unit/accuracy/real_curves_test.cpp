// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/real_curves.h"

#include <algorithm>

#include <gmock/gmock.h>

namespace tidemark::bench {
namespace {

std::vector<RealCurve> curves() {
  auto loaded = load_real_curves(TIDEMARK_SOURCE_DIR "/tests/fixtures/series/real_series.json");
  EXPECT_TRUE(loaded);
  return loaded ? *loaded : std::vector<RealCurve>();
}

RealCurve curve_of(std::size_t points) {
  RealCurve curve;
  curve.is_steps = true;
  for (std::size_t i = 0; i < points; ++i) {
    curve.xs.push_back(100.0 + 10.0 * static_cast<double>(i));
    curve.bytes.push_back(1e9);
  }
  return curve;
}

TEST(RealCurves, KnowTheirClassAndAxis) {
  const std::vector<RealCurve> all = curves();
  const auto find = [&](const char* id) {
    return std::find_if(all.begin(), all.end(), [&](const RealCurve& c) { return c.id == id; });
  };
  const auto leak = find("torch_13957_inverse");
  ASSERT_NE(leak, all.end());
  EXPECT_TRUE(leak->leaks());
  EXPECT_TRUE(leak->is_steps);
  EXPECT_EQ(leak->xs.size(), 11U);
  const auto warmup = find("mg_iso_job1");
  ASSERT_NE(warmup, all.end());
  EXPECT_FALSE(warmup->leaks());
}

TEST(RealCurves, AMissingFileIsAnError) { EXPECT_FALSE(load_real_curves("/nowhere/series.json")); }

TEST(ExplicitWarmup, LeavesFourPointsOrMore) {
  EXPECT_FALSE(explicit_warmup(curve_of(5)));
  EXPECT_EQ(explicit_warmup(curve_of(6))->warmup.steps, 15.0);   // 2 points inside, 4 after
  EXPECT_EQ(explicit_warmup(curve_of(20))->warmup.steps, 75.0);  // 8 inside, 12 after
}

}  // namespace
}  // namespace tidemark::bench
