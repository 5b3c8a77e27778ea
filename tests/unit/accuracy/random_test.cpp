// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/random.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>

namespace tidemark::bench {
namespace {

TEST(Random, GivesTheSameNumbersForEver) {
  Random random(1, 0);
  EXPECT_EQ(random.next(), 5226295891941712017U);
  EXPECT_EQ(random.next(), 5547022123706608281U);
  EXPECT_EQ(random.next(), 18144476329041699521U);
}

TEST(Random, StreamsDiffer) {
  EXPECT_NE(Random(1, 0).next(), Random(1, 1).next());
  EXPECT_NE(Random(1, 0).next(), Random(2, 0).next());
  EXPECT_NE(Random(1, 2).next(), Random(2, 1).next());
}

TEST(Random, StaysWithinItsEnds) {
  Random random(3);
  bool saw_low = false;
  bool saw_high = false;
  for (int i = 0; i < 1000; ++i) {
    const double uniform = random.uniform();
    EXPECT_TRUE(uniform >= 0.0 && uniform < 1.0);
    const double spread = random.log_between(30.0, 3000.0);
    EXPECT_TRUE(spread >= 29.999 && spread <= 3000.001);
    const std::uint64_t count = random.count(2, 4);
    EXPECT_TRUE(count >= 2 && count <= 4);
    saw_low = saw_low || count == 2;
    saw_high = saw_high || count == 4;
  }
  EXPECT_TRUE(saw_low && saw_high);
}

TEST(Random, NormalHasMeanZeroAndDeviationOne) {
  Random random(4);
  constexpr int kDraws = 40'000;
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / kDraws), 1.0, 0.02);
}

}  // namespace
}  // namespace tidemark::bench
