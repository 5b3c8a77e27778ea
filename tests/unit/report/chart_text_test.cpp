// SPDX-License-Identifier: Apache-2.0
#include "report/chart_text.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::report {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using tracker::kUnknown;
using tracker::Series;

TEST(Sparkline, TakesTheHighestSampleOfEachStretch) {
  Series series;
  for (int t = 0; t <= 40; ++t) {
    series.add(t, kUnknown, t == 25 ? 500.0 : 100.0 + t);
  }

  EXPECT_THAT(sparkline_values(series, 4), ElementsAre(109, 119, 500, 140));
}

TEST(Sparkline, LeavesOutLoadingAndTeardownWhereStepsAreKnown) {
  Series series;
  series.add(0.0, kUnknown, 9000.0);
  for (int t = 1; t <= 8; ++t) {
    series.add(t, t * 10, 100.0);
  }
  series.add(9.0, 80, 7000.0);

  EXPECT_THAT(sparkline_values(series, 2), ElementsAre(100, 100));
}

TEST(Sparkline, RepeatsWhatWasBeforeAGap) {
  Series series;
  series.add(0.0, kUnknown, 100.0);
  series.add(10.0, kUnknown, 200.0);

  EXPECT_THAT(sparkline_values(series, 4), ElementsAre(100, 100, 100, 200));
}

TEST(Sparkline, OfNothingIsNothing) {
  EXPECT_THAT(sparkline_values(Series(), 4), IsEmpty());
  EXPECT_EQ(sparkline_text({}, Glyphs::kUtf8), "");
}

TEST(Sparkline, GrowsFromNothingToTheHighest) {
  const std::vector<double> bytes{0.0, 10.0, 50.0, 100.0};

  EXPECT_EQ(sparkline_text(bytes, Glyphs::kUtf8), "▁▁▄█");
  EXPECT_EQ(sparkline_text(bytes, Glyphs::kAscii), "__-#");
}

TEST(ChangeSparkline, GoesFromTheLowestToTheHighestAndKeepsNoiseFlat) {
  using Values = std::vector<double>;
  EXPECT_EQ(change_sparkline(Values{0, 50, 100}, 10, Glyphs::kUtf8), "▁▅█");
  EXPECT_EQ(change_sparkline(Values{100, 100, 100}, 10, Glyphs::kUtf8), "▁▁▁");
  EXPECT_EQ(change_sparkline({}, 10, Glyphs::kUtf8), "");
  EXPECT_EQ(change_sparkline(Values{1, 2, 3, 4}, 2, Glyphs::kAscii).size(), 2U);
}

}  // namespace
}  // namespace tidemark::report
