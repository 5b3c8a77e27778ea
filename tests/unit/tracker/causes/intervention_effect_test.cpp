// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/intervention_effect.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/units.h"

namespace tidemark::tracker {
namespace {

struct Curve {
  double level_mib = 1000.0;
  double growth_mib_per_s = 0.0;
  double jitter_mib = 0.0;
};

// Every 100 ms from `from_s` to `to_s`.
std::vector<FootprintPoint> samples(const Curve& curve, double from_s, double to_s) {
  std::vector<FootprintPoint> points;
  for (double t_s = from_s; t_s <= to_s; t_s += 0.1) {
    const double jitter = points.size() % 3 == 0 ? curve.jitter_mib : 0.0;
    const double mib = curve.level_mib + curve.growth_mib_per_s * t_s + jitter;
    points.push_back({t_s, static_cast<std::uint64_t>(mib * static_cast<double>(kMiB))});
  }
  return points;
}

// A control of three seconds, a pause of two, and samples for one.
InterventionEffect effect_of(const Curve& curve, double freed_mib) {
  Curve after = curve;
  after.level_mib -= freed_mib;
  const auto effect = judge_effect(samples(curve, 0.0, 3.0), samples(after, 5.0, 6.0));
  EXPECT_TRUE(effect.has_value());
  return effect.value_or(InterventionEffect());
}

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

TEST(InterventionEffect, IsConfirmedWhereMuchComesBack) {
  const InterventionEffect effect = effect_of({}, 300.0);

  EXPECT_EQ(effect.outcome, InterventionOutcome::kConfirmed);
  EXPECT_EQ(effect.before_bytes, 1000 * kMiB);
  EXPECT_EQ(effect.after_bytes, 700 * kMiB);
  EXPECT_EQ(effect.effect_bytes, static_cast<std::int64_t>(300 * kMiB));
  EXPECT_EQ(effect.noise_bytes, 0U);
}

TEST(InterventionEffect, IsRuledOutWhereNothingComesBack) {
  EXPECT_EQ(effect_of({}, 0.0).outcome, InterventionOutcome::kRuledOut);
}

// 2 % of 1000 MiB.
TEST(InterventionEffect, IsRuledOutWhereTooLittleComesBackToMatter) {
  EXPECT_EQ(effect_of({}, 19.0).outcome, InterventionOutcome::kRuledOut);
  EXPECT_EQ(effect_of({}, 21.0).outcome, InterventionOutcome::kConfirmed);
}

TEST(InterventionEffect, DoesNotMatterBelowFourMebibytes) {
  EXPECT_EQ(effect_of({.level_mib = 20.0}, 3.9).outcome, InterventionOutcome::kRuledOut);
  EXPECT_EQ(effect_of({.level_mib = 20.0}, 4.1).outcome, InterventionOutcome::kConfirmed);
}

// It grows by 40 MiB from the middle of one to the middle of the other.
TEST(InterventionEffect, IsSeenBesideAGrowthThatGoesOn) {
  const InterventionEffect effect = effect_of({.growth_mib_per_s = 10.0}, 100.0);

  EXPECT_EQ(effect.outcome, InterventionOutcome::kConfirmed);
  EXPECT_NEAR(mib(effect.effect_bytes), 100.0, 1.0);
  EXPECT_NEAR(mib(static_cast<std::int64_t>(effect.noise_bytes)), 0.5 * 10.0 * 2.5, 1.0);
}

TEST(InterventionEffect, OfNothingIsNotHiddenByAGrowthThatIsSlow) {
  EXPECT_EQ(effect_of({.growth_mib_per_s = 5.0}, 0.0).outcome, InterventionOutcome::kRuledOut);
}

// A job that grows by 100 MiB/s may stop to do so at any time.
TEST(InterventionEffect, CannotBeToldFromAFastGrowth) {
  EXPECT_EQ(effect_of({.growth_mib_per_s = 100.0}, 0.0).outcome, InterventionOutcome::kCannotTell);
  EXPECT_EQ(effect_of({.growth_mib_per_s = 100.0}, 100.0).outcome,
            InterventionOutcome::kCannotTell);
}

TEST(InterventionEffect, CannotBeToldFromWhatMovesByItself) {
  const Curve moves = {.jitter_mib = 200.0};

  EXPECT_EQ(effect_of(moves, 0.0).outcome, InterventionOutcome::kCannotTell);
  EXPECT_EQ(effect_of(moves, 250.0).outcome, InterventionOutcome::kCannotTell);
  EXPECT_EQ(effect_of(moves, 600.0).outcome, InterventionOutcome::kConfirmed);
}

TEST(InterventionEffect, IsBelowZeroWhereItHasGrown) {
  const InterventionEffect effect = effect_of({}, -50.0);

  EXPECT_EQ(effect.effect_bytes, -static_cast<std::int64_t>(50 * kMiB));
  EXPECT_EQ(effect.outcome, InterventionOutcome::kRuledOut);
}

TEST(InterventionEffect, NeedsThreeSamplesEach) {
  const auto many = samples({}, 0.0, 1.0);
  const std::vector<FootprintPoint> few(many.begin(), many.begin() + 2);

  EXPECT_FALSE(judge_effect(few, many).has_value());
  EXPECT_FALSE(judge_effect(many, few).has_value());
}

TEST(InterventionShare, IsMuchFromAFifthOn) {
  EXPECT_EQ(judge_share(20, 100), InterventionOutcome::kConfirmed);
  EXPECT_EQ(judge_share(19, 100), InterventionOutcome::kRuledOut);
  EXPECT_EQ(judge_share(0, 0), InterventionOutcome::kRuledOut);
}

}  // namespace
}  // namespace tidemark::tracker
