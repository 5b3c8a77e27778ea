// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/unit/tracker/curves.h"

namespace tidemark::tracker {
namespace {

using test::kMb;
using test::on_steps;
using test::on_time;
using test::Points;
using test::sampled;

double leak_after_minute(double t) { return 2000.0 + 5.0 * std::max(0.0, t - 60.0); }
double warmup_then_flat(double t) { return 1000.0 + 20.0 * std::min(t, 100.0); }
double saw(double t) { return 2000.0 + 30.0 * std::fmod(t, 25.0); }
double rising_saw(double t) { return saw(t) + 2.0 * t; }

TEST(Judge, NothingIsUndetermined) {
  const SeriesVerdict reading = judge(Series(), {});
  EXPECT_EQ(reading.verdict, Verdict::kStable);
  EXPECT_TRUE(reading.undetermined);
  EXPECT_TRUE(reading.needs);
}

TEST(Judge, OnePointIsStableAndUndetermined) {
  const SeriesVerdict reading = judge(on_time({{5.0, 100.0}}), {});
  EXPECT_EQ(reading.verdict, Verdict::kStable);
  EXPECT_TRUE(reading.undetermined);
  EXPECT_EQ(reading.first_floor_bytes, 100.0 * kMb);
  EXPECT_EQ(reading.mean_bytes, 100.0 * kMb);
}

TEST(Judge, FewPointsThatRiseAreGrowing) {
  const SeriesVerdict reading = judge(on_steps({{0, 732}, {1, 1027}, {10, 3924}}), {});
  EXPECT_EQ(reading.verdict, Verdict::kGrowing);
  EXPECT_TRUE(reading.undetermined);
}

// The last sample finds a process that is ending.
TEST(Judge, TheEndOfAVeryShortRunIsNoSpike) {
  for (const int points : {6, 7, 8}) {
    const double last = points - 1;
    const SeriesVerdict reading =
        judge(on_time(sampled(static_cast<std::size_t>(points), 1.0,
                              [&](double t) { return t < last ? 300.0 + 40.0 * t : 280.0; })),
              {});
    EXPECT_GE(reading.verdict, Verdict::kGrowing) << points;
    EXPECT_TRUE(reading.find(PatternKind::kTeardown)) << points;
  }
}

// What the harness's leak looks like to a check, with any part of its memory given back at the end.
TEST(Judge, ALeakStaysOneHoweverMuchIsGivenBackInTheLastSample) {
  for (double given_back = 0.0; given_back < 60.0; given_back += given_back < 12.0 ? 0.25 : 4.0) {
    Points points = sampled(26, 0.1, [](double i) { return 50.0 + 4.0 * i; });
    for (auto& [x, mb] : points) {
      x = 14.0 + 6.6 * x;
    }
    points.back().second -= given_back;
    Points and_then_all = points;
    and_then_all.emplace_back(points.back().first + 2.0, 0.0);
    for (const Points& run : {points, and_then_all}) {
      const SeriesVerdict reading = judge(on_steps(run), test::with_warmup_steps(30.0));

      EXPECT_EQ(reading.verdict, Verdict::kLeak) << given_back;
      const Pattern* const leak = reading.find(PatternKind::kLeak);
      ASSERT_NE(leak, nullptr) << given_back;
      EXPECT_NEAR(*leak->rate.bytes_per_step, 4.0 / 6.6 * kMb, 0.03 * kMb) << given_back;
    }
  }
}

TEST(Judge, AConstantIsStable) {
  const SeriesVerdict reading = judge(on_time(sampled(500, 0.0, [](double) { return 700.0; })), {});
  EXPECT_EQ(reading.verdict, Verdict::kStable);
  EXPECT_FALSE(reading.undetermined);
  EXPECT_TRUE(reading.patterns.empty());
  ASSERT_TRUE(reading.smallest_detectable_per_s);
  EXPECT_GT(*reading.smallest_detectable_per_s, 0.0);
}

TEST(Judge, ZeroBytesAreStable) {
  const SeriesVerdict reading = judge(on_time(sampled(50, 0.0, [](double) { return 0.0; })), {});
  EXPECT_EQ(reading.verdict, Verdict::kStable);
  EXPECT_TRUE(std::isfinite(reading.confidence));
  EXPECT_FALSE(reading.smallest_detectable_per_s);
}

TEST(Judge, SamplesOfOneInstantAreOnePoint) {
  Series series;
  for (int i = 0; i < 100; ++i) {
    series.add(1.0, kUnknown, 100.0 + i);
  }
  const SeriesVerdict reading = judge(series, {});
  EXPECT_TRUE(reading.undetermined);
  EXPECT_EQ(reading.samples, 100U);
}

TEST(Judge, LeakAfterTheAllowance) {
  const SeriesVerdict reading =
      judge(on_time(sampled(600, 10.0, leak_after_minute)), test::with_warmup_seconds(30.0));
  EXPECT_EQ(reading.verdict, Verdict::kLeak);
  EXPECT_FALSE(reading.undetermined);
  const Pattern* leak = reading.find(PatternKind::kLeak);
  ASSERT_NE(leak, nullptr);
  EXPECT_EQ(leak->shape, LeakShape::kLinear);
  EXPECT_NEAR(*leak->rate.bytes_per_s, 5.0 * kMb, 0.2 * kMb);
  EXPECT_LE(*leak->rate.low_bytes_per_s, 5.0 * kMb);
  EXPECT_GE(*leak->rate.high_bytes_per_s, 5.0 * kMb);
  EXPECT_NEAR(*leak->from.t_s, 60.0, 30.0);
}

TEST(Judge, TheSameInsideTheAllowanceIsGrowing) {
  const SeriesVerdict reading =
      judge(on_time(sampled(600, 10.0, [](double t) { return 2000.0 + 5.0 * t; })),
            test::with_warmup_seconds(3600.0));
  EXPECT_EQ(reading.verdict, Verdict::kGrowing);
  ASSERT_TRUE(reading.needs);
  EXPECT_GE(reading.needs->more_s.value_or(0.0), 3000.0);
}

TEST(Judge, AutomaticallyALeakThatBeganAfterTheFloorHadSettled) {
  const auto level = [](double t) { return 2000.0 + 1.0 * std::max(0.0, t - 600.0); };
  EXPECT_EQ(judge(on_time(sampled(1300, 5.0, level)), {}).verdict, Verdict::kLeak);
  EXPECT_NE(judge(on_time(sampled(1100, 5.0, level)), {}).verdict, Verdict::kLeak);
}

TEST(Judge, AnAllowanceInStepsWhereNoneAreKnownIsTheAutomaticOne) {
  // Five minutes of growth after half an hour of calm: too short for the automatic allowance.
  const auto level = [](double t) { return 2000.0 + 5.0 * std::max(0.0, t - 1900.0); };
  const Series series = on_time(sampled(2200, 2.0, level));

  const SeriesVerdict automatic = judge(series, {});
  const SeriesVerdict in_steps = judge(series, test::with_warmup_steps(100.0));

  EXPECT_EQ(automatic.verdict, Verdict::kGrowing);
  EXPECT_EQ(in_steps.verdict, automatic.verdict);
  EXPECT_FALSE(automatic.warmup_ignored);
  EXPECT_TRUE(in_steps.warmup_ignored);
}

TEST(Judge, TellsWhenTheGateCountsWhatIsNotKnown) {
  Options options;
  options.min_leak = Rate{1e6, RateUnit::kStep, 1.0};
  const auto level = [](double) { return 700.0; };

  EXPECT_TRUE(judge(on_time(sampled(500, 1.0, level)), options).min_leak_ignored);
  EXPECT_FALSE(judge(on_steps(sampled(500, 1.0, level)), options).min_leak_ignored);
}

TEST(Judge, WarmupSaysWhereItSettled) {
  const SeriesVerdict reading = judge(on_time(sampled(600, 5.0, warmup_then_flat)), {});
  EXPECT_EQ(reading.verdict, Verdict::kWarmup);
  const Pattern* warmup = reading.find(PatternKind::kWarmup);
  ASSERT_NE(warmup, nullptr);
  EXPECT_NEAR(*warmup->to.t_s, 100.0, 20.0);
  EXPECT_NEAR(warmup->growth_bytes, 2000.0 * kMb, 100.0 * kMb);
}

TEST(Judge, WarmupAndLeakAreBothFound) {
  const auto level = [](double t) { return warmup_then_flat(t) + 0.5 * std::max(0.0, t - 150.0); };
  const SeriesVerdict reading =
      judge(on_time(sampled(1000, 5.0, level)), test::with_warmup_seconds(200.0));
  EXPECT_EQ(reading.verdict, Verdict::kLeak);
  EXPECT_NE(reading.find(PatternKind::kWarmup), nullptr);
}

TEST(Judge, ALeakIsAsOldAsItsLineNotAsTheAllowance) {
  const auto level = [](double t) { return warmup_then_flat(t) + 2.0 * std::max(0.0, t - 100.0); };
  const SeriesVerdict reading =
      judge(on_time(sampled(1000, 5.0, level)), test::with_warmup_seconds(500.0));
  ASSERT_EQ(reading.verdict, Verdict::kLeak);
  EXPECT_NEAR(*reading.find(PatternKind::kLeak)->from.t_s, 100.0, 45.0);
  ASSERT_NE(reading.find(PatternKind::kWarmup), nullptr);
  EXPECT_NEAR(*reading.find(PatternKind::kWarmup)->to.t_s, 100.0, 45.0);
}

TEST(Judge, AShortPlateauTellsWhatLeakItExcludes) {
  const SeriesVerdict reading = judge(on_steps({{10, 5376},
                                                {20, 6984},
                                                {30, 8675},
                                                {40, 10333},
                                                {50, 12066},
                                                {60, 13745},
                                                {70, 15547},
                                                {80, 17406},
                                                {90, 17844},
                                                {100, 17882},
                                                {240, 17882}}),
                                      {});
  ASSERT_TRUE(reading.smallest_detectable_per_step);
  EXPECT_LT(*reading.smallest_detectable_per_step, 10.0 * kMb);  // it grew by 169 MB per step
}

TEST(Judge, ASawWithAFlatFloorIsSpikes) {
  const SeriesVerdict reading =
      judge(on_time(sampled(600, 3.0, saw)), test::with_warmup_seconds(60.0));
  EXPECT_EQ(reading.verdict, Verdict::kSpikes);
  const Pattern* spikes = reading.find(PatternKind::kSpikes);
  ASSERT_NE(spikes, nullptr);
  EXPECT_NEAR(*spikes->period_s, 25.0, 1.0);
  EXPECT_NEAR(spikes->height_bytes, 720.0 * kMb, 20.0 * kMb);
}

TEST(Judge, ASawWithARisingFloorIsALeak) {
  const SeriesVerdict reading =
      judge(on_time(sampled(600, 3.0, rising_saw)), test::with_warmup_seconds(60.0));
  EXPECT_EQ(reading.verdict, Verdict::kLeak);
  EXPECT_NE(reading.find(PatternKind::kSpikes), nullptr);
  EXPECT_NEAR(*reading.find(PatternKind::kLeak)->rate.bytes_per_s, 2.0 * kMb, 0.2 * kMb);
}

TEST(Judge, PatternsAreInTheOrderOfTime) {
  const SeriesVerdict reading =
      judge(on_time(sampled(1500, 1.0, rising_saw)), test::with_warmup_seconds(300.0));

  ASSERT_NE(reading.find(PatternKind::kLeak), nullptr);
  ASSERT_NE(reading.find(PatternKind::kSpikes), nullptr);
  for (std::size_t i = 1; i < reading.patterns.size(); ++i) {
    EXPECT_LE(*reading.patterns[i - 1].from.t_s, *reading.patterns[i].from.t_s);
  }
}

TEST(Judge, EqualJumpsAtEachEvaluationAreALeakInSteps) {
  const auto level = [](double t) { return 2000.0 + 100.0 * std::floor(t / 60.0); };
  const SeriesVerdict reading =
      judge(on_time(sampled(600, 3.0, level)), test::with_warmup_seconds(60.0));
  EXPECT_EQ(reading.verdict, Verdict::kLeak);
  EXPECT_EQ(reading.find(PatternKind::kLeak)->shape, LeakShape::kSteps);
}

TEST(Judge, JumpsThatEndedAreAWarmup) {
  const auto level = [](double t) {
    return 2000.0 + 100.0 * std::floor(std::min(t, 299.0) / 60.0);
  };
  const SeriesVerdict reading =
      judge(on_time(sampled(900, 3.0, level)), test::with_warmup_seconds(30.0));
  EXPECT_EQ(reading.verdict, Verdict::kWarmup);
}

// Eight jumps, 50 s apart; the next one would be due at 450 s.
TEST(Judge, JumpsThatAreOverdueAreNoLeak) {
  const auto jumps = [](double t) { return 1000.0 + 40.0 * std::min(std::floor(t / 50.0), 8.0); };
  Options options;
  options.warmup.seconds = 60.0;

  for (const int end_s : {410, 430, 445}) {
    EXPECT_EQ(judge(on_time(sampled(static_cast<std::size_t>(end_s), 1.0, jumps)), options).verdict,
              Verdict::kLeak)
        << end_s;
  }
  for (const int end_s : {480, 490, 520}) {
    EXPECT_NE(judge(on_time(sampled(static_cast<std::size_t>(end_s), 1.0, jumps)), options).verdict,
              Verdict::kLeak)
        << end_s;
  }
}

TEST(Judge, OneLateJumpIsAStep) {
  const auto level = [](double t) { return t < 450.0 ? 2000.0 : 2300.0; };
  const SeriesVerdict reading =
      judge(on_time(sampled(600, 5.0, level)), test::with_warmup_seconds(60.0));
  EXPECT_NE(reading.verdict, Verdict::kLeak);
  EXPECT_NE(reading.verdict, Verdict::kGrowing);
  const Pattern* step = reading.find(PatternKind::kStep);
  ASSERT_NE(step, nullptr);
  EXPECT_NEAR(step->height_bytes, 300.0 * kMb, 20.0 * kMb);
}

TEST(Judge, GrowthThatEndsIsNoLeakHoweverLong) {
  const auto level = [](double t) { return 2000.0 + 1000.0 * (1.0 - std::exp(-t / 150.0)); };
  const SeriesVerdict reading =
      judge(on_time(sampled(600, 3.0, level)), test::with_warmup_seconds(100.0));
  EXPECT_NE(reading.verdict, Verdict::kLeak);
}

TEST(Judge, GrowthThatSlowsDownSinceTheStartHasAnAsymptote) {
  const auto level = [](double t) { return 2000.0 + 1000.0 * (1.0 - std::exp(-t / 400.0)); };
  Options options;
  options.limit_bytes = 32000.0 * kMb;
  const SeriesVerdict reading = judge(on_time(sampled(600, 1.0, level)), options);
  EXPECT_EQ(reading.verdict, Verdict::kGrowing);
  ASSERT_TRUE(reading.forecast.asymptote_bytes);
  EXPECT_NEAR(*reading.forecast.asymptote_bytes, 3000.0 * kMb, 100.0 * kMb);
  EXPECT_FALSE(reading.forecast.in_s_low);  // it ends before the limit
}

TEST(Judge, ATrendBelowTheGateIsDriftInsideStable) {
  const auto level = [](double t) { return 2000.0 + 0.02 * t; };
  Options options = test::with_warmup_seconds(60.0);
  options.min_leak = Rate{1e6, RateUnit::kSecond, 1.0};
  const SeriesVerdict reading = judge(on_time(sampled(2000, 0.2, level)), options);
  EXPECT_EQ(reading.verdict, Verdict::kStable);
  EXPECT_NE(reading.find(PatternKind::kDrift), nullptr);
}

TEST(Judge, ATrendBelowTheGateIsNoWarmupHoweverFarItWent) {
  for (const double mb_per_s : {0.02, 0.05, 0.2}) {
    for (const double warmup_s : {60.0, 1000.0}) {
      const auto level = [&](double t) { return 2000.0 + mb_per_s * t; };
      Options options = test::with_warmup_seconds(warmup_s);
      options.min_leak = Rate{1e6, RateUnit::kSecond, 1.0};
      const SeriesVerdict reading = judge(on_time(sampled(2000, 0.2, level)), options);
      EXPECT_EQ(reading.verdict, Verdict::kStable) << mb_per_s << ' ' << warmup_s;
      EXPECT_NE(reading.find(PatternKind::kDrift), nullptr) << mb_per_s << ' ' << warmup_s;
    }
  }
}

TEST(Judge, AWarmupBeforeATrendBelowTheGateIsStillOne) {
  const auto level = [](double t) { return 1000.0 + 10.0 * std::min(t, 100.0) + 0.05 * t; };
  Options options = test::with_warmup_seconds(200.0);
  options.min_leak = Rate{1e6, RateUnit::kSecond, 1.0};
  const SeriesVerdict reading = judge(on_time(sampled(2000, 0.2, level)), options);
  EXPECT_EQ(reading.verdict, Verdict::kWarmup);
  EXPECT_NE(reading.find(PatternKind::kDrift), nullptr);
}

TEST(Judge, ForecastIsAnIntervalThatHoldsTheTruth) {
  Options options = test::with_warmup_seconds(30.0);
  options.limit_bytes = 10'000.0 * kMb;
  const SeriesVerdict reading = judge(on_time(sampled(600, 10.0, leak_after_minute)), options);
  const double truth = (10'000.0 - leak_after_minute(600.0)) / 5.0;
  ASSERT_TRUE(reading.forecast.in_s_low && reading.forecast.in_s_high);
  EXPECT_LE(*reading.forecast.in_s_low, truth);
  EXPECT_GE(*reading.forecast.in_s_high, truth * 0.98);
}

TEST(Judge, ALeakAboveThePrintedSizeIsHardlyEverCalledStable) {
  const Options options = test::with_warmup_seconds(120.0);
  int calm = 0;
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const double rate = 0.01 + 0.0005 * static_cast<double>(seed);  // MB/s, around what is seen
    const auto level = [&](double t) { return 2000.0 + rate * t; };
    const SeriesVerdict reading = judge(on_time(sampled(600, 20.0, level, seed)), options);
    ASSERT_TRUE(reading.smallest_detectable_per_s);
    const bool is_told = reading.find(PatternKind::kLateRise) != nullptr;  // no claim, but a word
    if (!is_told && reading.verdict < Verdict::kGrowing) {
      ++calm;
      wrong += rate * kMb > *reading.smallest_detectable_per_s ? 1 : 0;
    }
  }
  EXPECT_GT(calm, 20);  // or nothing was tested
  EXPECT_LE(wrong, 4);  // their rates are all close to that size
}

TEST(Judge, GivesFloorAndCeilingForCharts) {
  const SeriesVerdict reading = judge(on_time(sampled(600, 3.0, saw)), {});
  ASSERT_GE(reading.floor.size(), 4U);
  for (const FloorPoint& point : reading.floor) {
    EXPECT_LE(point.floor_bytes, point.mean_bytes);
    EXPECT_LE(point.mean_bytes, point.ceiling_bytes);
  }
  EXPECT_LE(reading.min_bytes, reading.first_floor_bytes);
  EXPECT_GE(reading.max_bytes, 2600.0 * kMb);
}

// Properties: what may not change the kind of the verdict.
struct Shape {
  const char* name;
  double (*level)(double);
};

class Invariance : public testing::TestWithParam<Shape> {
 protected:
  Points points() const { return sampled(600, 4.0, GetParam().level); }
  Options options() const { return test::with_warmup_seconds(150.0); }
};

TEST_P(Invariance, OfATimeShift) {
  Points shifted = points();
  for (auto& point : shifted) {
    point.first += 1e6;
  }
  EXPECT_EQ(judge(on_time(points()), options()).verdict,
            judge(on_time(shifted), options()).verdict);
}

TEST_P(Invariance, OfScalingMemoryAndOptionsTogether) {
  Points scaled = points();
  for (auto& point : scaled) {
    point.second *= 37.0;
  }
  Options small = options();
  Options large = options();
  small.min_leak = Rate{0.5e6, RateUnit::kSecond, 1.0};
  large.min_leak = Rate{0.5e6 * 37.0, RateUnit::kSecond, 1.0};
  EXPECT_EQ(judge(on_time(points()), small).verdict, judge(on_time(scaled), large).verdict);
}

TEST_P(Invariance, OfScalingTime) {
  Points scaled = points();
  for (auto& point : scaled) {
    point.first *= 60.0;
  }
  Options minutes = options();
  minutes.warmup.seconds = *minutes.warmup.seconds * 60.0;
  minutes.min_leak = Rate{0.5e6 / 60.0, RateUnit::kSecond, 1.0};
  Options seconds = options();
  seconds.min_leak = Rate{0.5e6, RateUnit::kSecond, 1.0};
  EXPECT_EQ(judge(on_time(points()), seconds).verdict, judge(on_time(scaled), minutes).verdict);
}

TEST_P(Invariance, OfHoldingEachSample) {
  Points held;
  for (const auto& [x, mb] : points()) {
    for (int i = 0; i < 7; ++i) {
      held.emplace_back(x + i / 7.0, mb);
    }
  }
  EXPECT_EQ(judge(on_time(points()), options()).verdict, judge(on_time(held), options()).verdict);
}

TEST_P(Invariance, OfTheOrderOfSamples) {
  Points reversed = points();
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(judge(on_time(points()), options()).verdict,
            judge(on_time(reversed), options()).verdict);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Invariance,
                         testing::Values(Shape{"flat", [](double) { return 3000.0; }},
                                         Shape{"leak", leak_after_minute},
                                         Shape{"warmup", warmup_then_flat}, Shape{"saw", saw},
                                         Shape{"rising_saw", rising_saw}),
                         [](const auto& shape) { return std::string(shape.param.name); });

TEST(Judge, AMillionSamplesGiveWhatTheirShapeSays) {
  Series series;
  test::TestNoise noise(11);
  for (int i = 0; i < 1'000'000; ++i) {
    series.add(0.1 * i, kUnknown, (4000.0 + 0.01 * i + 20.0 * noise.next()) * kMb);
  }
  const SeriesVerdict reading = judge(series, test::with_warmup_seconds(1000.0));
  EXPECT_EQ(reading.verdict, Verdict::kLeak);
  EXPECT_NEAR(*reading.find(PatternKind::kLeak)->rate.bytes_per_s, 0.1 * kMb, 0.002 * kMb);
}

TEST(Judge, GrowthThatIsTooLittleToMatterIsNotGrowing) {
  // A third of a per cent that ends in the middle of the window, beneath spikes.
  Points points;
  for (int step = 0; step < 400; step += 3) {
    const double floor = 60.0 + 0.2 * std::min(step, 190) / 190.0;
    points.emplace_back(step, floor + (step % 50 >= 42 ? 200.0 : 0.0));
  }

  EXPECT_EQ(judge(on_steps(points), test::with_warmup_steps(100)).verdict, Verdict::kSpikes);
}

TEST(Judge, SmallShiftsDoNotMakeALeakYounger) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    // A straight rise since step 100; in its second half the level shifts a little now and then.
    test::TestNoise noise(seed);
    Points points;
    double shift = 0.0;
    for (int step = 0; step < 400; step += 4) {
      if (step > 200 && std::abs(noise.next()) > 1.5) {
        shift += noise.next() > 0.0 ? 0.3 : -0.3;
      }
      points.emplace_back(step, 0.7 * std::max(0, step - 100) + shift);
    }
    Options options;
    options.epoch_steps = 80;

    EXPECT_EQ(judge(on_steps(points), options).verdict, Verdict::kLeak) << seed;
  }
}

TEST(Judge, AnOldProcessIsJudgedAsSoonAsItsRiseHasLasted) {
  Options old;
  old.age_at_start_s = 8 * 3600.0;
  const auto rising = [](std::size_t seconds) {
    return on_time(sampled(seconds, 1.0, [](double t) { return 2000.0 + 3.0 * t; }));
  };

  EXPECT_EQ(judge(rising(720), old).verdict, Verdict::kLeak);
  EXPECT_EQ(judge(rising(720), {}).verdict, Verdict::kGrowing);
  const SeriesVerdict early = judge(rising(120), old);
  EXPECT_EQ(early.verdict, Verdict::kGrowing);
  EXPECT_NEAR(early.needs.value().more_s.value(), 600.0 - 120.0, 60.0) << "not half an hour";
}

TEST(Judge, AnOldProcessThatSettlesOrSlowsDownDoesNotLeak) {
  Options old;
  old.age_at_start_s = 8 * 3600.0;

  EXPECT_EQ(judge(on_time(sampled(900, 1.0, warmup_then_flat)), old).verdict, Verdict::kWarmup);
  EXPECT_EQ(judge(on_time(sampled(900, 1.0,
                                  [](double t) { return 3000.0 - 1000.0 * std::exp(-t / 400.0); })),
                  old)
                .verdict,
            Verdict::kGrowing);
}

double rate_against_gate(const SeriesVerdict& reading) {
  for (const Evidence& evidence : reading.evidence) {
    if (evidence.kind == EvidenceKind::kRateAgainstGate && evidence.bar.value_or(0.0) > 0.0) {
      return evidence.value / *evidence.bar;
    }
  }
  return 0.0;
}

// A gate per hour is no gate where the clock stands still: the one per 1,000 steps counts then.
TEST(Judge, ALeakIsAboveTheGateAlsoWhereTimeStandsStill) {
  Options options;
  options.warmup.steps = 100.0;
  const auto verdict = [&](double mb_per_step) {
    Series series;
    for (const auto& [step, mb] :
         sampled(9000, 0.5, [&](double step) { return 1000.0 + mb_per_step * step; })) {
      series.add(5.0, step, mb * kMb);
    }
    return judge(series, options);
  };

  const SeriesVerdict slow = verdict(0.002);  // 0.2 % of the floor in 1,000 steps
  EXPECT_NE(slow.verdict, Verdict::kLeak);
  EXPECT_TRUE(slow.find(PatternKind::kDrift));
  const SeriesVerdict fast = verdict(0.02);
  EXPECT_EQ(fast.verdict, Verdict::kLeak);
  EXPECT_GE(rate_against_gate(fast), 1.0);
}

TEST(Judge, GrowthThatEndedIsNoLeakAfterAnExplicitWarmupEither) {
  Options options;
  options.warmup.steps = 16.0;
  const auto until = [](double end) {
    return [end](double step) { return 78.0 + 200.0 * std::pow(std::min(step / end, 1.0), 2.0); };
  };
  for (const std::uint64_t seed : {7U, 8U, 9U}) {
    const SeriesVerdict ended = judge(on_steps(sampled(186, 0.01, until(150.0), seed)), options);
    EXPECT_NE(ended.verdict, Verdict::kLeak) << seed;
    const SeriesVerdict goes_on = judge(on_steps(sampled(186, 0.01, until(186.0), seed)), options);
    EXPECT_EQ(goes_on.verdict, Verdict::kLeak) << seed;
    EXPECT_GE(rate_against_gate(goes_on), 1.0);
  }
}

}  // namespace
}  // namespace tidemark::tracker
