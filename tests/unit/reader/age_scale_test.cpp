// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/live_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

constexpr std::uint32_t kStep = wire::kEpochIsStep;

EpochRange range_of(std::initializer_list<std::uint32_t> epochs) {
  EpochRange range;
  for (const std::uint32_t epoch : epochs) {
    range.add(epoch);
  }
  return range;
}

TEST(AgeScale, HasOneBucketAtTheBeginning) {
  const AgeScale scale(EpochRange{}, 0);

  EXPECT_THAT(scale.buckets(), testing::ElementsAre(AgeBucket{0, 0, false}));
  EXPECT_EQ(scale.bucket_of(0), 0U);
}

TEST(AgeScale, HasOneBucketPerSecondInAShortRun) {
  const AgeScale scale(range_of({0, 3}), 9);

  ASSERT_EQ(scale.buckets().size(), 10U);
  EXPECT_EQ(scale.buckets()[9], (AgeBucket{9, 9, false}));
  EXPECT_EQ(scale.bucket_of(4), 4U);
}

TEST(AgeScale, CoversALongRunUpToNowInBucketsOfOneWidth) {
  const AgeScale scale(range_of({0, 3}), 99);  // 100 seconds in 25 buckets of 4

  ASSERT_EQ(scale.buckets().size(), 25U);
  EXPECT_EQ(scale.buckets()[0], (AgeBucket{0, 3, false}));
  EXPECT_EQ(scale.buckets()[24], (AgeBucket{96, 99, false}));
  EXPECT_EQ(scale.bucket_of(3), 0U);
  EXPECT_EQ(scale.bucket_of(4), 1U);
  EXPECT_EQ(scale.bucket_of(99), 24U);
}

TEST(AgeScale, BeginsWithTheFirstStepThatABlockHas) {
  const AgeScale scale(range_of({kStep | 50'000, kStep | 50'020}), kStep | 50'031);

  ASSERT_EQ(scale.buckets().size(), 32U);
  EXPECT_EQ(scale.buckets()[0], (AgeBucket{50'000, 50'000, true}));
  EXPECT_EQ(scale.buckets()[31], (AgeBucket{50'031, 50'031, true}));
  EXPECT_EQ(scale.bucket_of(kStep | 50'020), 20U);
}

TEST(AgeScale, PutsSecondsBeforeSteps) {
  const AgeScale scale(range_of({0, 15, kStep | 1}), kStep | 48);

  ASSERT_EQ(scale.buckets().size(), 32U);  // 8 of 2 seconds, 24 of 2 steps
  EXPECT_EQ(scale.buckets()[7], (AgeBucket{14, 15, false}));
  EXPECT_EQ(scale.buckets()[8], (AgeBucket{1, 2, true}));
  EXPECT_EQ(scale.buckets()[31], (AgeBucket{47, 48, true}));
  EXPECT_EQ(scale.bucket_of(15), 7U);
  EXPECT_EQ(scale.bucket_of(kStep | 48), 31U);
}

TEST(AgeScale, CountsEpochsOutsideItToItsEnds) {
  const AgeScale steps(range_of({kStep | 10, kStep | 4000}), kStep | 20);
  const AgeScale seconds(EpochRange{}, 5);

  EXPECT_EQ(steps.bucket_of(kStep | 0x7fff'ffff), steps.buckets().size() - 1);
  EXPECT_EQ(steps.bucket_of(kStep | 1), 0U);
  EXPECT_EQ(steps.bucket_of(3), steps.buckets().size() - 1);
  EXPECT_EQ(seconds.bucket_of(0x7fff'ffff), 5U);
}

TEST(AgeScale, NeverHasMoreBucketsThanItMay) {
  constexpr std::uint32_t kMost = 0x7fff'ffff;
  for (const std::uint32_t most : {0U, 1U, 7U, 8U, 31U, 32U, 33U, 63U, 65U, 1000U, kMost}) {
    for (const std::uint32_t now : {most, kStep | most}) {
      const AgeScale scale(range_of({0, most, kStep, kStep | most}), now);
      EXPECT_LE(scale.buckets().size(), kMostAgeBuckets);
      for (const std::uint32_t epoch : {0U, most, kMost, kStep, kStep | most, kStep | kMost}) {
        EXPECT_LT(scale.bucket_of(epoch), scale.buckets().size());
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::reader
