// SPDX-License-Identifier: Apache-2.0
// The cases that started the project: jobs that were believed to leak, and the numbers in the
// notes.
#include <gtest/gtest.h>

#include <cstddef>

#include "tests/unit/tracker/curves.h"

namespace tidemark::tracker {
namespace {

using test::kMb;
using test::on_steps;
using test::on_time;
using test::Points;

const Points kJob1{{10, 5376},  {20, 6984},  {30, 8675},  {40, 10333},  {50, 12066}, {60, 13745},
                   {70, 15547}, {80, 17406}, {90, 17844}, {100, 17882}, {240, 17882}};
const Points kJob2{{10, 6136},  {20, 7763},  {30, 9451},  {40, 11100},  {50, 12786}, {60, 14494},
                   {70, 16296}, {80, 18155}, {90, 18576}, {100, 18614}, {180, 18614}};

// The notes give the plateau as one statement; the job logged every ten steps.
Points with_plateau_logged(Points points) {
  const auto [last, level] = points.back();
  points.pop_back();
  for (double step = 110; step <= last; step += 10) {
    points.emplace_back(step, level);
  }
  return points;
}

class SeedJob : public testing::TestWithParam<Points> {};

TEST_P(SeedJob, IsAWarmupThatEndsAtStepNinety) {
  const SeriesVerdict reading = judge(on_steps(GetParam()), {});

  EXPECT_EQ(reading.verdict, Verdict::kWarmup);
  EXPECT_FALSE(reading.undetermined);
  const Pattern* warmup = reading.find(PatternKind::kWarmup);
  ASSERT_NE(warmup, nullptr);
  ASSERT_TRUE(warmup->to.step);
  EXPECT_NEAR(*warmup->to.step, 90.0, 10.0);
  ASSERT_TRUE(warmup->rate.bytes_per_step);
  EXPECT_GE(*warmup->rate.bytes_per_step, 165.0 * kMb);
  EXPECT_LE(*warmup->rate.bytes_per_step, 190.0 * kMb);
}

TEST_P(SeedJob, IsNeverCalledALeakOnTheWay) {
  for (std::size_t count = 1; count <= GetParam().size(); ++count) {
    const SeriesVerdict reading = judge(on_steps(test::prefix(GetParam(), count)), {});
    EXPECT_NE(reading.verdict, Verdict::kLeak) << "after " << count << " points";
    if (count >= 2 && count <= 8) {
      EXPECT_EQ(reading.verdict, Verdict::kGrowing) << "after " << count << " points";
      EXPECT_TRUE(reading.undetermined);
      ASSERT_TRUE(reading.needs);
      EXPECT_GT(reading.needs->more_steps.value_or(0.0), 100.0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Notes, SeedJob,
                         testing::Values(kJob1, kJob2, with_plateau_logged(kJob1),
                                         with_plateau_logged(kJob2)));

TEST(Seeds, ValidationThatComesBackIsASpike) {
  const SeriesVerdict reading = judge(on_time({{0, 6200}, {5, 10400}, {10, 4800}}), {});

  EXPECT_EQ(reading.verdict, Verdict::kSpikes);
  EXPECT_TRUE(reading.undetermined);  // three points exclude nothing
  const Pattern* spikes = reading.find(PatternKind::kSpikes);
  ASSERT_NE(spikes, nullptr);
  EXPECT_EQ(spikes->count, 1U);
  EXPECT_NEAR(spikes->height_bytes, 4200.0 * kMb, 1.0);
}

TEST(Seeds, FiftyMegabytesUnderNoiseOfAHundredAreNoLeak) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Points points = test::sampled(
        300, 100.0, [](double t) { return 6000.0 + 50.0 * t / 300.0; }, seed);
    const SeriesVerdict reading = judge(on_time(points), test::with_warmup_seconds(30.0));
    EXPECT_NE(reading.verdict, Verdict::kLeak) << "seed " << seed;
    EXPECT_NE(reading.verdict, Verdict::kGrowing) << "seed " << seed;
  }
}

TEST(Seeds, AThousandMegabytesAfterWarmupAreALeak) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Points points = test::sampled(
        300, 100.0,
        [](double t) {
          return t < 60.0 ? 3000.0 + 50.0 * t : 6000.0 + 1000.0 * (t - 60.0) / 240.0;
        },
        seed);
    const SeriesVerdict reading = judge(on_time(points), test::with_warmup_seconds(70.0));
    EXPECT_EQ(reading.verdict, Verdict::kLeak) << "seed " << seed;
  }
}

TEST(Seeds, TheJobThatWasExpectedToDieInFifteenMinutesIsGrowingWithAForecast) {
  Options options;
  options.limit_bytes = 32768.0 * kMb;
  const auto check = [&](const Points& points) {
    const SeriesVerdict reading = judge(on_time(points), options);
    EXPECT_EQ(reading.verdict, Verdict::kGrowing);
    EXPECT_TRUE(reading.undetermined);
    ASSERT_TRUE(reading.forecast.in_s_low && reading.forecast.in_s_high);
    EXPECT_LE(*reading.forecast.in_s_low, 14.0 * 60.0);
    EXPECT_GE(*reading.forecast.in_s_high, 17.0 * 60.0);
    EXPECT_LE(*reading.forecast.in_s_high, 30.0 * 60.0);
  };
  check({{0.0, 1254.0}, {174.0, 6625.0}});
  Points points;  // irregular, as the notes say
  test::TestNoise noise(5);
  for (double t = 0.0; t <= 174.0; t += 2.0) {
    points.emplace_back(t, 1254.0 + 5371.0 * t / 174.0 + 60.0 * noise.next());
  }
  check(points);
}

}  // namespace
}  // namespace tidemark::tracker
