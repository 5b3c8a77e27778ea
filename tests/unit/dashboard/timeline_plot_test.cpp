// SPDX-License-Identifier: Apache-2.0
#include "dashboard/timeline_plot.h"

#include <string>
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
