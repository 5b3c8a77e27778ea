// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/curve_window.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tidemark::tracker {
namespace {

Series curve(double (*bytes)(double)) {
  Series series;
  for (double t_s = 0.0; t_s <= 1000.0; t_s += 1.0) {
    series.add(t_s, t_s / 10.0, bytes(t_s));
  }
  return series;
}

TEST(Levels, AreLowWaterMarksOfBothEnds) {
  const Series series = curve([](double t_s) {
    const bool spike = t_s == 5.0 || t_s == 500.0 || t_s == 1000.0;
    return 100.0 + t_s + (spike ? 5000.0 : 0.0);
  });

  const Levels levels = levels_in(series, {}).value_or(Levels{});

  EXPECT_EQ(levels.first_bytes, 100.0);
  EXPECT_EQ(levels.last_bytes, 1001.0);
  EXPECT_EQ(levels.max_bytes, 6100.0);
  EXPECT_FALSE(levels_in(series, {2000.0, 3000.0}).has_value());
  EXPECT_FALSE(levels_in(Series(), {}).has_value());
}

TEST(Levels, HoldStillInSteps) {
  Series steps;
  steps.add(kUnknown, 10.0, 100.0);
  steps.add(kUnknown, 20.0, 300.0);

  EXPECT_EQ(growth_in(steps, {5.0, 25.0}), 200.0);
  EXPECT_EQ(growth_in(steps, {15.0, 25.0}), 0.0);
}

TEST(Levels, FindTheCellsAroundAPlace) {
  Series series;
  series.add(10.0, kUnknown, 1.0);
  series.add(20.0, kUnknown, 2.0);

  EXPECT_EQ(cell_before(series, 5.0)->min_bytes, 1.0);
  EXPECT_EQ(cell_before(series, 20.0)->min_bytes, 2.0);
  EXPECT_EQ(cell_after(series, 11.0)->min_bytes, 2.0);
  EXPECT_EQ(cell_after(series, 30.0)->min_bytes, 2.0);
  EXPECT_EQ(cell_before(Series(), 5.0), nullptr);
  EXPECT_EQ(cell_after(Series(), 5.0), nullptr);
}

TEST(GrowthForm, TellsALineFromACurveAndFromAJump) {
  const auto form = [](double (*bytes)(double)) { return form_of(curve(bytes), {}); };

  EXPECT_EQ(form([](double t_s) { return 1000.0 + t_s; }), GrowthForm::kStraight);
  EXPECT_EQ(form([](double t_s) { return 2000.0 - 1000.0 * std::exp(-t_s / 400.0); }),
            GrowthForm::kSlowing);
  EXPECT_EQ(form([](double t_s) { return t_s < 300.0 ? 1000.0 : 2000.0; }), GrowthForm::kOneJump);
  EXPECT_EQ(form([](double t_s) { return 1000.0 + std::min(t_s, 500.0); }), GrowthForm::kNone);
  EXPECT_EQ(form([](double) { return 1000.0; }), GrowthForm::kNone);
}

TEST(GrowthForm, FindsTheLargestRise) {
  const Series series =
      curve([](double t_s) { return t_s < 300.0 ? 1000.0 + t_s / 10.0 : 2000.0; });

  const Moment at = largest_rise(series, {}).value_or(Moment{});

  EXPECT_EQ(at.t_s, 300.0);
  EXPECT_EQ(at.step, 30.0);
  EXPECT_FALSE(largest_rise(series, {400.0, 500.0}).has_value());
}

TEST(Sawtooth, RisesSlowlyAndFallsAtOnce) {
  Pattern spikes;
  spikes.height_bytes = 100.0;
  spikes.count = 10;

  EXPECT_TRUE(is_sawtooth(curve([](double t_s) { return 500.0 + std::fmod(t_s, 100.0); }), spikes));
  EXPECT_FALSE(
      is_sawtooth(curve([](double t_s) { return 500.0 + 99.0 - std::fmod(t_s, 100.0); }), spikes));
  EXPECT_FALSE(is_sawtooth(
      curve([](double t_s) { return std::fmod(t_s, 100.0) > 90.0 ? 600.0 : 500.0; }), spikes));
}

}  // namespace
}  // namespace tidemark::tracker
