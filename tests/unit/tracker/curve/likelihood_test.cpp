// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/likelihood.h"

#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "tests/unit/tracker/curves.h"
#include "tracker/curve/judge.h"

namespace tidemark::tracker {
namespace {

using test::kMb;
using test::on_steps;
using test::on_time;
using test::sampled;

// Two minutes, a sample each second.
template <typename Shape>
SeriesVerdict look(Shape shape, const Options& options = {}) {
  return judge(on_time(sampled(120, 1.0, shape)), options);
}

double straight(double t) { return 2000.0 + 9.0 * t; }

Options aged(double age_s) {
  Options options;
  options.age_at_start_s = age_s;
  return options;
}

double chance(const SeriesVerdict& verdict) {
  EXPECT_TRUE(verdict.likelihood);
  return verdict.likelihood ? verdict.likelihood->chance : -1.0;
}

TEST(Likelihood, IsForWhatCannotBeDecidedYet) {
  EXPECT_FALSE(look([](double) { return 2000.0; }).likelihood);
  EXPECT_FALSE(judge(on_time(sampled(4000, 1.0, straight)), {}).likelihood) << "a leak is one";
}

TEST(Likelihood, StraightGrowthIsLikelyALeak) {
  const SeriesVerdict verdict = look(straight);

  ASSERT_EQ(verdict.verdict, Verdict::kGrowing);
  EXPECT_EQ(verdict.likelihood->form, RiseForm::kStraight);
  EXPECT_NEAR(*verdict.likelihood->since.t_s, 0.0, 3.0);
  EXPECT_GT(chance(verdict), 0.65);
  EXPECT_LT(chance(verdict), 0.95);
}

TEST(Likelihood, GrowthThatSlowsDownIsLikelyWarmup) {
  const SeriesVerdict verdict =
      look([](double t) { return 2000.0 + 3000.0 * (1.0 - std::exp(-t / 60.0)); });

  ASSERT_EQ(verdict.verdict, Verdict::kGrowing);
  EXPECT_EQ(verdict.likelihood->form, RiseForm::kSlowing);
  EXPECT_LT(chance(verdict), 0.35);
}

TEST(Likelihood, OneJumpIsHardlyALeak) {
  const SeriesVerdict verdict = look([](double t) { return t < 110.0 ? 2000.0 : 2600.0; });

  ASSERT_EQ(verdict.verdict, Verdict::kGrowing);
  EXPECT_EQ(verdict.likelihood->form, RiseForm::kUneven);
  EXPECT_LT(chance(verdict), 0.5);
}

TEST(Likelihood, OneJumpIsHardlyALeakInAFewSamplesEither) {
  const auto few = [](auto shape) { return judge(on_time(sampled(7, 0.05, shape)), aged(600.0)); };
  const SeriesVerdict jumped = few([](double t) { return t < 4.0 ? 0.2 : 10.0; });
  ASSERT_EQ(jumped.verdict, Verdict::kGrowing);
  EXPECT_EQ(jumped.likelihood->form, RiseForm::kUneven);
  EXPECT_LT(chance(jumped), 0.5);

  const SeriesVerdict rising = few([](double t) { return 100.0 + 100.0 * t; });
  ASSERT_EQ(rising.verdict, Verdict::kGrowing);
  EXPECT_EQ(rising.likelihood->form, RiseForm::kStraight);
}

TEST(Likelihood, IsNotToldOfTheStartOfAProgramNorOfAFewSamples) {
  const auto seen_for = [](std::size_t samples, const Options& options) {
    return judge(on_time(sampled(samples, 1.0, [](double t) { return 2000.0 + 100.0 * t; })),
                 options);
  };

  EXPECT_EQ(seen_for(25, {}).verdict, Verdict::kGrowing);
  EXPECT_FALSE(seen_for(25, {}).likelihood);
  EXPECT_TRUE(seen_for(32, {}).likelihood);
  EXPECT_TRUE(seen_for(25, aged(600.0)).likelihood);
  EXPECT_EQ(seen_for(5, aged(600.0)).verdict, Verdict::kGrowing);
  EXPECT_FALSE(seen_for(5, aged(600.0)).likelihood);
}

TEST(Likelihood, WhatFollowsALoadCountsByItself) {
  const SeriesVerdict verdict =
      look([](double t) { return t < 30.0 ? 500.0 + 100.0 * t : 3500.0 + 5.0 * (t - 30.0); });

  ASSERT_EQ(verdict.verdict, Verdict::kGrowing);
  EXPECT_EQ(verdict.likelihood->form, RiseForm::kStraight);
  EXPECT_NEAR(*verdict.likelihood->since.t_s, 30.0, 6.0);
  EXPECT_GT(chance(verdict), 0.5);
}

TEST(Likelihood, TheOlderTheJobTheLikelierTheLeak) {
  EXPECT_LT(chance(look(straight)), chance(look(straight, aged(600.0))));
  EXPECT_GT(chance(look(straight, aged(8 * 3600.0))), 0.9);
}

TEST(Likelihood, ARiseThatBeganBeforeOurEyesIsYoungHoweverOldTheJob) {
  const auto late = [](double t) { return 2000.0 + (t < 80.0 ? 0.0 : 9.0 * (t - 80.0)); };

  EXPECT_LT(chance(look(late, aged(8 * 3600.0))), chance(look(straight, aged(8 * 3600.0))));
}

TEST(Likelihood, WhatFillsTheMachineIsLikelierALeak) {
  Options small = aged(0.0);
  small.limit_bytes = 9000.0 * kMb;
  EXPECT_GT(chance(look(straight, small)), chance(look(straight)));
}

// 547 MiB a minute fill a machine in about half an hour: an answer after thirty minutes is too
// late.
TEST(Likelihood, TheAllowanceEndsBeforeTheMachineIsFull) {
  Options options = aged(0.0);
  options.limit_bytes = 18'000.0 * kMb;  // reached after 1,778 s
  const auto judged_after = [&](double seconds) {
    return judge(on_time(sampled(static_cast<std::size_t>(seconds), 1.0, straight)), options);
  };

  EXPECT_NEAR(*judged_after(700.0).allowance_end->t_s, 889.0, 20.0);
  EXPECT_EQ(judged_after(700.0).verdict, Verdict::kGrowing);
  EXPECT_EQ(judged_after(1200.0).verdict, Verdict::kLeak);

  options.limit_bytes.reset();
  EXPECT_EQ(judged_after(1200.0).verdict, Verdict::kGrowing);
}

// Loading a model fills more than half of a machine within a minute.
TEST(Likelihood, TheAllowanceIsLongEnoughToLoadAModel) {
  Options options = aged(0.0);
  options.limit_bytes = 24'000.0 * kMb;
  const SeriesVerdict verdict =
      judge(on_time(sampled(100, 1.0, [](double t) { return 500.0 + 200.0 * t; })), options);

  EXPECT_EQ(verdict.verdict, Verdict::kGrowing);
  EXPECT_NEAR(*verdict.allowance_end->t_s, 300.0, 5.0);
}

TEST(LateRise, IsToldWhereItIsTooSmallToCount) {
  // Flat for 240 steps, then 45 KiB a step: 2.6 MiB of 400.
  const SeriesVerdict verdict = judge(
      on_steps(sampled(300, 0.03,
                       [](double step) { return 400.0 + 0.046 * std::max(0.0, step - 240.0); })),
      test::with_warmup_steps(30.0));

  EXPECT_EQ(verdict.verdict, Verdict::kStable);
  const Pattern* const rise = verdict.find(PatternKind::kLateRise);
  ASSERT_NE(rise, nullptr);
  EXPECT_NEAR(*rise->from.step, 240.0, 12.0);
  EXPECT_NEAR(*rise->rate.bytes_per_step, 0.046 * kMb, 0.01 * kMb);
  EXPECT_LE(*verdict.tested_to.step, *rise->from.step) << "only what came before was tested";
}

TEST(LateRise, IsToldOfAShortStraightRise) {
  // 60 MB a minute for 20 s on 4 GB: half a per cent.
  const SeriesVerdict verdict =
      judge(on_time(sampled(20, 0.05, [](double t) { return 4000.0 + t; })), {});

  EXPECT_NE(verdict.find(PatternKind::kLateRise), nullptr);
  EXPECT_EQ(verdict.tested_to.t_s, verdict.end.t_s) << "there is nothing before it";
}

TEST(LateRise, NoiseIsNone) {
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto flat = [](double) { return 4000.0; };
    const SeriesVerdict verdict = judge(on_time(sampled(300, 1.0, flat, seed)), {});
    told += verdict.find(PatternKind::kLateRise) != nullptr ? 1 : 0;
  }
  EXPECT_LE(told, 1);
}

}  // namespace
}  // namespace tidemark::tracker
