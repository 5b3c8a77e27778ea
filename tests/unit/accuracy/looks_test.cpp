// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/looks.h"

#include <gtest/gtest.h>

namespace tidemark::bench {
namespace {

TEST(Looks, AreTheSameForTheSameNumbers) {
  for (std::uint64_t index = 0; index < kLookKinds; ++index) {
    const Look one = generate_look(3, index);
    const Look again = generate_look(3, index);
    ASSERT_EQ(one.curve.points.size(), again.curve.points.size());
    EXPECT_EQ(one.curve.points.back().footprint_bytes, again.curve.points.back().footprint_bytes);
    EXPECT_EQ(one.leaks, index < 5) << look_name(look_at(index));
  }
}

TEST(Looks, AFillIsUnknowableWhileItIsStraightAndKnowableAfterItsEnd) {
  Look look;
  look.curve.recipe.baseline_bytes = 1e9;
  look.curve.recipe.ramps = {{0.0, 300.0, 1e9, 0.0}};
  look.sigma_bytes = 1e6;
  EXPECT_FALSE(look.is_knowable(120.0));
  EXPECT_TRUE(look.is_knowable(310.0));
}

TEST(Looks, ALeakIsKnowableOnceItStandsOutOfTheNoise) {
  Look look;
  look.leaks = true;
  look.curve.recipe.baseline_bytes = 1e9;
  look.curve.recipe.leak = Leak{LeakForm::kLine, 0.0, 600.0, 0.5e6, 0.0};
  look.sigma_bytes = 1e6;
  EXPECT_FALSE(look.is_knowable(20.0));  // 10 MB of 1 GB
  EXPECT_TRUE(look.is_knowable(60.0));
}

}  // namespace
}  // namespace tidemark::bench
