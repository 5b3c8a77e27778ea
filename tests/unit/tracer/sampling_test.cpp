// SPDX-License-Identifier: Apache-2.0
// The mathematics of sampling: draws, weights, and that both together are unbiased.
#include "profiler/wire/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "profiler/tracer/block_filter.h"
#include "profiler/tracer/block_sampling.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {
namespace {

TEST(Sampling, TheProbabilityIsThatOfTheExponential) {
  for (double x = 1e-12; x < 100.0; x *= 1.37) {
    const double expected = -std::expm1(-x);
    EXPECT_NEAR(wire::probability_of_sample(x) / expected, 1.0, 1e-12) << x;
  }
  EXPECT_EQ(wire::probability_of_sample(0.0), 0.0);
}

TEST(Sampling, AWeightIsTheInverseOfTheProbability) {
  for (const std::uint64_t period : {1ULL, 100ULL, 4096ULL, 524288ULL, 1ULL << 40U}) {
    for (const std::uint64_t size : {1ULL, 16ULL, 4096ULL, 1ULL << 20U, 1ULL << 47U}) {
      const double chance = -std::expm1(-static_cast<double>(size) / static_cast<double>(period));
      EXPECT_NEAR(wire::sample_weight(size, period) * chance, 1.0, 1e-12);
    }
  }
}

TEST(Sampling, EveryBlockStandsForItselfWithoutAPeriod) {
  EXPECT_EQ(wire::sample_weight(0, 0), 1.0);
  EXPECT_EQ(wire::sample_weight(12345, 0), 1.0);
  EXPECT_EQ(wire::sample_weight(1ULL << 45U, 4096), 1.0);
  EXPECT_EQ(wire::sample_weight(0, 4096), wire::sample_weight(1, 4096));
}

TEST(Draw, TheLogarithmIsAccurate) {
  for (double x = 1.0; x > 1e-16; x *= 0.731) {
    EXPECT_NEAR(log_of_fraction(x), std::log(x), 1e-13 * (1.0 + std::abs(std::log(x)))) << x;
  }
  EXPECT_EQ(log_of_fraction(1.0), 0.0);
  EXPECT_NEAR(log_of_fraction(0x1p-53), std::log(0x1p-53), 1e-12);
}

TEST(Draw, GapsHaveTheMeanAndSpreadOfTheExponential) {
  constexpr int kDraws = 200'000;
  constexpr double kPeriod = 524288.0;
  std::uint64_t random = 12345;
  double sum = 0.0;
  double squares = 0.0;

  for (int i = 0; i < kDraws; ++i) {
    const auto gap = static_cast<double>(draw_gap(random, 524288));
    sum += gap;
    squares += gap * gap;
  }

  const double mean = sum / kDraws;
  const double deviation = std::sqrt(squares / kDraws - mean * mean);
  EXPECT_NEAR(mean / kPeriod, 1.0, 5.0 / std::sqrt(kDraws));
  EXPECT_NEAR(deviation / kPeriod, 1.0, 8.0 / std::sqrt(kDraws));
}

TEST(Draw, GapsAreAtLeastOneByteAndNeverOverflow) {
  std::uint64_t random = 99;
  for (const std::uint64_t period : {0ULL, 1ULL, 1ULL << 62U, ~0ULL}) {
    for (int i = 0; i < 10'000; ++i) {
      EXPECT_GE(draw_gap(random, period), 1U);
    }
  }
}

TEST(Draw, TheGeneratorNeverStops) {
  std::uint64_t random = 1;
  for (int i = 0; i < 100'000; ++i) {
    next_random(random);
    ASSERT_NE(random, 0U);
  }
}

// What the recorder does, with blocks of all sizes: the weighted sum is the truth on average, with
// the variance that the theory gives.
TEST(Sampling, TheWeightedSumIsUnbiasedOverManySeeds) {
  constexpr std::uint64_t kPeriod = 4096;
  constexpr int kSeeds = 400;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    sizes.push_back(16 + wire::mix(i) % (i % 50 == 0 ? 20'000U : 300U));
  }
  double truth = 0.0;
  double variance = 0.0;
  for (const std::uint64_t size : sizes) {
    const auto bytes = static_cast<double>(size);
    truth += bytes;
    variance += bytes * bytes * (wire::sample_weight(size, kPeriod) - 1.0);
  }

  double sum = 0.0;
  double squares = 0.0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    std::uint64_t random = wire::mix(static_cast<std::uint64_t>(seed)) | 1U;
    std::uint64_t remaining = draw_gap(random, kPeriod);
    double estimate = 0.0;
    for (const std::uint64_t size : sizes) {
      if (size < remaining) {
        remaining -= size;
        continue;
      }
      estimate += static_cast<double>(size) * wire::sample_weight(size, kPeriod);
      remaining = draw_gap(random, kPeriod);
    }
    sum += estimate - truth;
    squares += (estimate - truth) * (estimate - truth);
  }

  EXPECT_LT(std::abs(sum / kSeeds), 4.5 * std::sqrt(variance / kSeeds));
  EXPECT_NEAR(squares / kSeeds / variance, 1.0, 5.0 * std::sqrt(2.0 / kSeeds));
}

TEST(BlockFilter, HoldsWhatWasAddedAndNotRemoved) {
  const auto filter = std::make_unique<BlockFilter>();
  const auto* const block = reinterpret_cast<const void*>(0x7f0012345670);

  EXPECT_FALSE(filter->may_hold(block));
  filter->add(block);
  filter->add(block);
  filter->remove(block);
  EXPECT_TRUE(filter->may_hold(block));
  filter->remove(block);
  EXPECT_FALSE(filter->may_hold(block));
}

TEST(BlockFilter, ASaturatedCounterStays) {
  const auto filter = std::make_unique<BlockFilter>();
  const auto* const block = reinterpret_cast<const void*>(0x7f0012345670);
  for (int i = 0; i < 300; ++i) {
    filter->add(block);
  }
  for (int i = 0; i < 300; ++i) {
    filter->remove(block);
  }

  EXPECT_TRUE(filter->may_hold(block));
}

// Blocks of one size, of a page each, of a mapping each, of the heap of a thread each.
TEST(BlockFilter, SaysNoToNearlyAllOthers) {
  for (const std::uintptr_t apart : {0x210U, 0x1000U, 0x21000U, 0x100000U, 0x201000U, 0x4000000U}) {
    const auto filter = std::make_unique<BlockFilter>();
    for (std::uintptr_t i = 0; i < 1000; ++i) {
      filter->add(reinterpret_cast<const void*>(0x7f0000000010 + i * apart));
    }
    int maybe = 0;
    int same_layout = 0;
    for (std::uintptr_t i = 0; i < 100'000; ++i) {
      maybe += filter->may_hold(reinterpret_cast<const void*>(0x555500000000 + i * 16)) ? 1 : 0;
      const std::uintptr_t other = 0x7f4012000010 + i * apart;
      same_layout += filter->may_hold(reinterpret_cast<const void*>(other)) ? 1 : 0;
    }

    EXPECT_LT(maybe, 3000) << std::hex << apart;  // 1000 of 65536 places
    EXPECT_LT(same_layout, 3000) << std::hex << apart;
  }
}

TEST(BlockFilter, AfterHoldingAllHoldsOnlyWhatIsRecordedOrPinned) {
  const auto filter = std::make_unique<BlockFilter>();
  constexpr std::uint64_t kRecorded = 0x7f0012345670;
  const auto* const recorded = reinterpret_cast<const void*>(kRecorded);
  const auto* const pinned = reinterpret_cast<const void*>(0x4560);
  const auto* const other = reinterpret_cast<const void*>(0x1230);

  filter->pin(pinned);
  filter->hold_all();
  EXPECT_TRUE(filter->holds_all());
  EXPECT_TRUE(filter->may_hold(other));
  filter->hold_only([](auto mark) { mark(kRecorded); });

  EXPECT_FALSE(filter->holds_all());
  EXPECT_TRUE(filter->may_hold(recorded));
  EXPECT_TRUE(filter->may_hold(pinned));
  EXPECT_FALSE(filter->may_hold(other));
}

}  // namespace
}  // namespace tidemark::tracer
