// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/series.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace tidemark::tracker {
namespace {

TEST(Series, KeepsFewSamplesAsTheyAre) {
  Series series;
  series.add(1.0, kUnknown, 10.0);
  series.add(2.0, 7.0, 20.0);

  ASSERT_EQ(series.cells().size(), 2U);
  EXPECT_EQ(series.cells()[0].t_s, 1.0);
  EXPECT_TRUE(std::isnan(series.cells()[0].step));
  EXPECT_EQ(series.cells()[1].step, 7.0);
  EXPECT_EQ(series.cells()[1].mean_bytes(), 20.0);
}

TEST(Series, DropsAndCountsWhatIsNoAmountOfMemoryAtAPlace) {
  Series series;
  series.add(1.0, kUnknown, kUnknown);
  series.add(1.0, kUnknown, std::numeric_limits<double>::infinity());
  series.add(1.0, kUnknown, -1.0);
  series.add(kUnknown, kUnknown, 1.0);
  series.add(std::numeric_limits<double>::infinity(), kUnknown, 1.0);

  EXPECT_EQ(series.dropped(), 5U);
  EXPECT_TRUE(series.empty());
  EXPECT_TRUE(series.cells().empty());
}

TEST(Series, DropsWhatNoMachineHasAndNoRunReaches) {
  Series series;
  series.add(1.0, kUnknown, 1e300);
  series.add(1e300, kUnknown, 1.0);
  series.add(kUnknown, -1e300, 1.0);
  series.add(1.0, 1e300, 1.0);  // its time is known

  EXPECT_EQ(series.dropped(), 3U);
  ASSERT_EQ(series.cells().size(), 1U);
  EXPECT_TRUE(std::isnan(series.cells()[0].step));
}

TEST(Series, PutsSamplesInOrder) {
  Series series;
  for (const double t : {3.0, 1.0, 2.0}) {
    series.add(t, kUnknown, 10.0 * t);
  }

  ASSERT_EQ(series.cells().size(), 3U);
  EXPECT_EQ(series.cells()[0].min_bytes, 10.0);
  EXPECT_EQ(series.cells()[2].min_bytes, 30.0);
  EXPECT_EQ(series.out_of_order(), 2U);
}

TEST(Series, MergesNeighboursAndKeepsTheirExtremes) {
  Series series(16);
  for (int i = 0; i < 1000; ++i) {
    series.add(i, kUnknown, i == 500 ? 1.0 : 100.0);
  }

  EXPECT_LE(series.cells().size(), 16U);
  std::uint64_t samples = 0;
  double lowest = 100.0;
  for (const Cell& cell : series.cells()) {
    samples += cell.count;
    lowest = std::min(lowest, cell.min_bytes);
    EXPECT_EQ(cell.max_bytes, 100.0);
  }
  EXPECT_EQ(samples, 1000U);
  EXPECT_EQ(lowest, 1.0);
}

TEST(Series, IsTheSameHoweverOftenItWasLookedAt) {
  Series watched(16);
  Series read_later(16);
  for (int i = 0; i < 777; ++i) {
    watched.add(i, kUnknown, i);
    read_later.add(i, kUnknown, i);
    watched.cells();
  }

  ASSERT_EQ(watched.cells().size(), read_later.cells().size());
  for (std::size_t i = 0; i < watched.cells().size(); ++i) {
    EXPECT_EQ(watched.cells()[i].t_s, read_later.cells()[i].t_s);
    EXPECT_EQ(watched.cells()[i].count, read_later.cells()[i].count);
  }
}

// The profiler has thousands of them.
TEST(Series, OfFewCellsTakesLittleMoreThanThese) {
  constexpr std::size_t kSeries = 200;
  constexpr std::size_t kCells = 256;
  const auto used = [] { return ::mallinfo2().uordblks; };
  const std::size_t before = used();
  std::vector<Series> all(kSeries, Series(kCells));

  for (int sample = 0; sample < 3000; ++sample) {
    for (Series& each : all) {
      each.add(sample, kUnknown, 1e6);
    }
    if (sample % 100 == 0) {  // nothing is known of mallinfo2() under the sanitizers
      EXPECT_LE(used() - before, kSeries * (kCells + 80) * sizeof(Cell));
    }
  }
  EXPECT_EQ(all.front().samples(), 3000U);
}

TEST(Series, ReadsAFileBackwardsInBoundedMemory) {
  Series series(64);
  for (int i = 100'000; i > 0; --i) {
    series.add(i, kUnknown, i);
  }

  EXPECT_LE(series.cells().size(), 64U);
  EXPECT_EQ(series.cells().front().min_bytes, 1.0);
  EXPECT_EQ(series.cells().back().max_bytes, 100'000.0);
  EXPECT_TRUE(std::is_sorted(series.cells().begin(), series.cells().end(),
                             [](const Cell& a, const Cell& b) { return a.t_s < b.t_s; }));
}

}  // namespace
}  // namespace tidemark::tracker
