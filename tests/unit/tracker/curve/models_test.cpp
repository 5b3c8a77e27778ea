// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tidemark::tracker {
namespace {

std::vector<double> places(std::size_t count) {
  std::vector<double> x;
  for (std::size_t i = 0; i < count; ++i) {
    x.push_back(static_cast<double>(i));
  }
  return x;
}

template <typename Level>
std::vector<double> values(const std::vector<double>& x, const Level& level) {
  std::vector<double> y;
  for (const double place : x) {
    y.push_back(level(place));
  }
  return y;
}

TEST(Saturation, FindsThePlateauOfACurveThatEnds) {
  const auto x = places(40);
  const auto y = values(x, [](double t) { return 100.0 + 50.0 * (1.0 - std::exp(-t / 10.0)); });
  const auto fit = fit_saturation(x, y);

  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->plateau_bytes, 150.0, 1.5);
  EXPECT_NEAR(fit->tau, 10.0, 1.5);
}

TEST(Saturation, NoneOfACurveThatFalls) {
  const auto x = places(10);
  EXPECT_FALSE(fit_saturation(x, values(x, [](double t) { return 100.0 - t; })));
}

TEST(Kink, FindsWhereTheSlopeChanges) {
  const auto x = places(30);
  const auto y = values(x, [](double t) { return t < 12.0 ? 5.0 : 5.0 + 3.0 * (t - 12.0); });
  const auto kink = fit_kink(x, y, 4);

  ASSERT_TRUE(kink);
  EXPECT_DOUBLE_EQ(kink->x, 12.0);
  EXPECT_EQ(kink->index, 12U);
  EXPECT_NEAR(kink->before, 0.0, 1e-9);
  EXPECT_NEAR(kink->after, 3.0, 1e-9);
  EXPECT_NEAR(kink->squares, 0.0, 1e-9);
}

TEST(Kink, NeedsRoomOnBothSides) {
  const auto x = places(7);
  EXPECT_FALSE(fit_kink(x, x, 4));
}

TEST(Jumps, AreLevelsThatChangeAndStay) {
  const auto x = places(20);
  auto y = values(x, [](double t) { return t < 8.0 ? 100.0 : (t < 15.0 ? 110.0 : 104.0); });
  y[3] = 130.0;  // does not stay
  const auto jumps = find_jumps(x, y, 1.0);

  ASSERT_EQ(jumps.size(), 2U);
  EXPECT_EQ(jumps[0].index, 8U);
  EXPECT_DOUBLE_EQ(jumps[0].height_bytes, 10.0);
  EXPECT_EQ(jumps[1].index, 15U);
  EXPECT_DOUBLE_EQ(jumps[1].height_bytes, -6.0);
}

TEST(Jumps, AreTakenOutOfALineWithoutTouchingItsSlope) {
  const auto x = places(20);
  const auto y = values(x, [](double t) { return 100.0 + 2.0 * t + (t < 8.0 ? 0.0 : 50.0); });
  const auto without = take_out_jumps(x, y, {{8, 8.0, 47.0}});  // a poor guess of the height

  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(without.smooth[i], 100.0 + 2.0 * x[i], 1e-9);
  }
  // Spreads within 8 and within 12 points: (8^3 - 8) / 12 + (12^3 - 12) / 12.
  EXPECT_DOUBLE_EQ(without.information, 42.0 + 143.0);
}

TEST(Jumps, ARampIsNone) {
  const auto x = places(30);
  const auto y = values(x, [](double t) { return 100.0 + 10.0 * std::clamp(t - 10.0, 0.0, 6.0); });
  EXPECT_TRUE(find_jumps(x, y, 1.0).empty());
}

TEST(InformationCriterion, PaysForParametersWithTheLogarithmOfThePoints) {
  EXPECT_NEAR(
      information_criterion(10.0, 10, 10.0, 3, 0.0) - information_criterion(10.0, 10, 10.0, 2, 0.0),
      std::log(10.0), 1e-12);
}

TEST(Segments, CutsWarmupPlateauAndLeakApart) {
  const auto x = places(48);
  const auto y = values(x, [](double t) {
    return 1000.0 + 50.0 * std::min(t, 12.0) + (t > 30.0 ? 8.0 * (t - 30.0) : 0.0);
  });
  const auto segments = find_segments(x, y, 1.0);

  ASSERT_EQ(segments.size(), 3U);
  EXPECT_NEAR(segments[0].line.slope, 50.0, 1e-6);
  EXPECT_NEAR(static_cast<double>(segments[1].first), 12.0, 1.0);
  EXPECT_NEAR(segments[1].line.slope, 0.0, 1e-6);
  EXPECT_NEAR(static_cast<double>(segments[2].first), 30.0, 1.0);
  EXPECT_NEAR(segments[2].line.slope, 8.0, 1e-6);
}

TEST(Segments, OneLineStaysOne) {
  const auto x = places(48);
  EXPECT_EQ(find_segments(x, values(x, [](double t) { return 7.0 + t; }), 0.5).size(), 1U);
}

}  // namespace
}  // namespace tidemark::tracker
