// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/bloom_filter.h"

#include <gtest/gtest.h>

#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {
namespace {

class BloomFilterTest : public testing::Test {
 protected:
  void TearDown() override { filter_.clear(); }
  void begin() {
    filter_.enable([](auto) {});
  }
  std::uint64_t wrong_of_100_000() const {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      wrong += filter_.may_hold(wire::mix(i + (1U << 30U))) ? 1U : 0U;
    }
    return wrong;
  }

  BloomFilter filter_;
};

TEST_F(BloomFilterTest, HasNoMemoryAndMayHoldEverythingAtFirst) {
  EXPECT_EQ(filter_.bytes(), 0U);
  EXPECT_TRUE(filter_.may_hold(wire::mix(1)));
}

TEST_F(BloomFilterTest, HoldsWhatWasAddedBeforeItWasEnabled) {
  filter_.enable([](auto add) { add(wire::mix(7)); });

  EXPECT_GT(filter_.bytes(), 0U);
  EXPECT_TRUE(filter_.may_hold(wire::mix(7)));
  EXPECT_FALSE(filter_.may_hold(wire::mix(8)));
}

TEST_F(BloomFilterTest, HoldsAllThatWasAdded) {
  begin();
  for (std::uint64_t i = 0; i < 500'000; ++i) {
    filter_.add(wire::mix(i));
  }

  for (std::uint64_t i = 0; i < 500'000; ++i) {
    ASSERT_TRUE(filter_.may_hold(wire::mix(i))) << i;
  }
}

TEST_F(BloomFilterTest, HasFewFalsePositives) {
  begin();
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    filter_.add(wire::mix(i));
  }
  EXPECT_LT(wrong_of_100_000(), 500U);

  for (std::uint64_t i = 0; i < 500'000; ++i) {
    filter_.add(wire::mix(i));
  }
  EXPECT_LT(wrong_of_100_000(), 10'000U);
}

TEST_F(BloomFilterTest, IsEmptyWhenCleared) {
  begin();
  filter_.add(wire::mix(1));

  filter_.clear();

  EXPECT_EQ(filter_.bytes(), 0U);
  begin();
  EXPECT_FALSE(filter_.may_hold(wire::mix(1)));
}

}  // namespace
}  // namespace tidemark::tracer
