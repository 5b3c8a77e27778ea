// SPDX-License-Identifier: Apache-2.0
#include "dashboard/timeline_plot.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tidemark::dashboard {
namespace {

// A column for each second.
TimelineModel timeline_of(double seconds, std::vector<TimelinePhase> phases) {
  TimelineModel timeline;
  timeline.to_s = seconds;
  timeline.phases = std::move(phases);
  return timeline;
}

// 100 seconds at this many bytes, with a floor as high.
TimelineModel level_timeline(double from_bytes, double to_bytes) {
  TimelineModel timeline;
  timeline.to_s = 100.0;
  for (int t = 0; t <= 100; ++t) {
    const double bytes = from_bytes + (to_bytes - from_bytes) * t / 100.0;
    timeline.points.push_back({static_cast<double>(t), bytes, bytes});
    timeline.floor.push_back({static_cast<double>(t), bytes, bytes});
  }
  return timeline;
}

std::size_t filled_cells(const Plot& plot) {
  return static_cast<std::size_t>(
      std::count_if(plot.cells.begin(), plot.cells.end(),
                    [](const PlotCell& cell) { return cell.ink != Ink::kNone; }));
}

TEST(Plot, OfAFlatJobIsALineAndNotAWall) {
  for (const bool utf8 : {true, false}) {
    for (const PlotRange range : {PlotRange::kFit, PlotRange::kFromZero, PlotRange::kToLimit}) {
      TimelineModel timeline = level_timeline(1000.0, 1001.0);
      timeline.limit_bytes = 4000.0;
      timeline.range = range;

      const Plot plot = draw_timeline(timeline, 40, 9, utf8);

      EXPECT_LE(filled_cells(plot), 120U) << "a line, and the limit";
    }
  }
  const Plot plot = draw_timeline(level_timeline(1000.0, 1001.0), 40, 9, true);
  EXPECT_EQ(plot.at(20, 0).ink, Ink::kNone);
  EXPECT_NE(plot.at(20, 4).ink, Ink::kNone) << "in the middle";
  EXPECT_EQ(plot.at(20, 8).ink, Ink::kNone);
}

TEST(Plot, FillsThinlyBelowAFloorThatRises) {
  const Plot plot = draw_timeline(level_timeline(500.0, 1000.0), 40, 10, true);
  EXPECT_EQ(plot.at(39, 9).glyph, "⡐");
  EXPECT_EQ(plot.at(39, 9).ink, Ink::kFloor);
  EXPECT_EQ(draw_timeline(level_timeline(500.0, 1000.0), 40, 10, false).at(39, 9).glyph, ".");
}

TEST(Plot, BeginsAtZeroAndEndsAtTheLimitOnRequest) {
  TimelineModel timeline = level_timeline(800.0, 1000.0);
  timeline.limit_bytes = 4000.0;
  EXPECT_GT(draw_timeline(timeline, 40, 10, true).low_bytes, 0.0);

  timeline.range = PlotRange::kFromZero;
  const Plot from_zero = draw_timeline(timeline, 40, 10, true);
  EXPECT_EQ(from_zero.low_bytes, 0.0);
  EXPECT_LT(from_zero.high_bytes, 2000.0);

  timeline.range = PlotRange::kToLimit;
  const Plot to_limit = draw_timeline(timeline, 40, 10, true);
  EXPECT_EQ(to_limit.low_bytes, 0.0);
  EXPECT_EQ(to_limit.high_bytes, 4000.0);
  EXPECT_EQ(to_limit.at(0, 0).ink, Ink::kLimit);
}

TEST(Plot, HasACursorThatLeavesTheCurveInSight) {
  TimelineModel timeline = level_timeline(500.0, 1000.0);
  timeline.floor.clear();
  const Plot without = draw_timeline(timeline, 40, 10, true);
  timeline.cursor_s = 50.0;

  const Plot plot = draw_timeline(timeline, 40, 10, true);

  std::size_t kept = 0;
  for (std::size_t y = 0; y < 10; ++y) {
    EXPECT_EQ(plot.at(20, y).ink, Ink::kCursor);
    kept += plot.at(20, y).glyph == without.at(20, y).glyph ? 1U : 0U;
  }
  EXPECT_GE(kept, 1U);
  EXPECT_NE(plot.at(19, 0).ink, Ink::kCursor);
}

TEST(PhaseLine, ShadesByNameAndNotByTurn) {
  const PhaseLine drawn = draw_phases(timeline_of(40, {{0, 8, "train", 0},
                                                       {8, 15, "eval", 1},
                                                       {15, 22, "eval", 1},
                                                       {22, 31, "train", 0},
                                                       {31, 39, "save", 2}}),
                                      40, /*utf8=*/true);

  EXPECT_EQ(drawn.line, "▒train▒▒░eval░░░eval░░▒train▒▒▒▓save▓▓▓▓");
  EXPECT_EQ(drawn.legend, "");
}

TEST(PhaseLine, ShowsTheLettersThatFitAndTheNamesBelow) {
  const PhaseLine drawn = draw_phases(
      timeline_of(20, {{0, 8, "train", 0}, {8, 11, "eval", 1}, {11, 14, "checkpoint", 2}}), 20,
      /*utf8=*/true);

  EXPECT_EQ(drawn.line, "▒train▒▒░ev▓che     ");
  EXPECT_EQ(drawn.legend, "░ eval  ▓ checkpoint");
}

TEST(PhaseLine, NeedsNoLegendForANameThatFitsSomewhere) {
  const PhaseLine drawn =
      draw_phases(timeline_of(20, {{0, 2, "eval", 1}, {10, 16, "eval", 1}}), 20, /*utf8=*/true);

  EXPECT_EQ(drawn.line, "░ev       ░eval░░   ");
  EXPECT_EQ(drawn.legend, "");
}

TEST(PhaseLine, ShowsNamesThatAreNotAscii) {
  const PhaseLine drawn = draw_phases(
      timeline_of(30, {{0, 9, "évaluer", 0}, {9, 16, "訓練", 1}, {16, 18, "評価", 2}}), 30,
      /*utf8=*/true);

  EXPECT_EQ(drawn.line, "▒évaluer▒░訓練░░▓評           ");
  EXPECT_EQ(drawn.legend, "▓ 評価");
}

TEST(PhaseLine, CutsNoWideCharacterInHalf) {
  const PhaseLine drawn =
      draw_phases(timeline_of(20, {{0, 10, "訓練中", 0}, {4, 5, "x", 1}, {12, 13, "評", 2}}), 20,
                  /*utf8=*/true);

  // An inner phase takes the second half of one character and the first half of the next.
  EXPECT_EQ(drawn.line, "▒訓▒░x▒▒▒▒▒ ▓▓      ");
  EXPECT_EQ(drawn.legend, "▒ 訓練中  ▓ 評");
}

TEST(PhaseLine, InAsciiSaysThatThereWasALetter) {
  const PhaseLine drawn =
      draw_phases(timeline_of(20, {{0, 9, "évaluer", 0}, {10, 12, "save", 1}}), 20,
                  /*utf8=*/false);

  EXPECT_EQ(drawn.line, ":?valuer::.sa       ");
  EXPECT_EQ(drawn.legend, ". save");
}

}  // namespace
}  // namespace tidemark::dashboard
