// SPDX-License-Identifier: Apache-2.0
// What goes to the terminal and what comes from files, as text.
#include <unistd.h>

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dashboard/live_sources.h"
#include "dashboard/terminal.h"
#include "dashboard/timeline_plot.h"
#include "tests/support/temp_tree.h"

namespace tidemark::dashboard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FramePainter, SendsOnlyLinesThatDiffer) {
  FramePainter painter;
  EXPECT_THAT(painter.paint({"one", "two"}, {10, 2}), HasSubstr("\x1b[2J"));

  EXPECT_EQ(painter.paint({"one", "TWO"}, {10, 2}), "\x1b[2;1HTWO");
  EXPECT_EQ(painter.paint({"one", "TWO"}, {10, 2}), "");
}

TEST(FramePainter, SendsEverythingAfterAResizeAndOnRequest) {
  FramePainter painter;
  painter.paint({"one"}, {10, 1});

  EXPECT_THAT(painter.paint({"one"}, {12, 1}), HasSubstr("one"));
  painter.forget();
  EXPECT_THAT(painter.paint({"one"}, {12, 1}), HasSubstr("one"));
}

TEST(OutputTail, ShowsWhatATerminalWouldShow) {
  EXPECT_THAT(last_lines("a\n\x1b[31mred\x1b[0m\n 10%\r 20%\r 30%\r\n\n\x1b]0;title\aend", 8),
              ElementsAre("a", "red", " 30%", "end"));
  EXPECT_THAT(last_lines("a\nb\nc\n", 2), ElementsAre("b", "c"));
  EXPECT_THAT(last_lines("bell\x07 \xff", 2), ElementsAre("bell\\x07 \\xff"));
  EXPECT_THAT(last_lines("", 2), IsEmpty());
}

TEST(OutputTail, FollowsAFileThatGrows) {
  const tests::TempTree tree;
  const std::string path = tree.path("out.log");
  OutputTail tail(path);
  EXPECT_FALSE(tail.refresh()) << "not there yet";
  std::ofstream file(path);
  file << std::string(20'000, 'x') << "\nlast\n" << std::flush;

  EXPECT_TRUE(tail.refresh());
  EXPECT_THAT(tail.lines(), ElementsAre("last"));
  EXPECT_FALSE(tail.refresh()) << "nothing new";
}

TEST(CpuMeter, IsTheDifferenceBetweenTwoLooks) {
  const tests::TempTree tree;
  const auto stat = [&](int pid, int ticks, int start) {
    tree.write(std::to_string(pid) + "/stat",
               std::to_string(pid) + " (py) S 1 1 1 0 -1 0 0 0 0 0 " + std::to_string(ticks) +
                   " 0 0 0 20 0 1 0 " + std::to_string(start) + " 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  };
  CpuMeter meter(tree.path());
  stat(10, 100, 5);
  stat(11, 100, 5);
  meter.sample({{10, 5}, {11, 5}, {12, 5}}, 1.0);
  EXPECT_TRUE(meter.shares().empty());
  stat(10, 150, 5);
  stat(11, 150, 6);  // the pid was used again

  meter.sample({{10, 5}, {11, 5}, {12, 5}}, 2.0);

  ASSERT_EQ(meter.shares().size(), 1U);
  EXPECT_NEAR(meter.shares().at({10, 5}), 50.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)), 1e-9);
}

TimelineModel timeline_of(std::vector<HistoryPoint> points) {
  TimelineModel timeline;
  timeline.from_s = 0.0;
  timeline.to_s = 4.0;
  timeline.points = std::move(points);
  return timeline;
}

std::string line_of(const Plot& plot, std::size_t y) {
  std::string line;
  for (std::size_t x = 0; x < plot.width; ++x) {
    line += plot.at(x, y).glyph;
  }
  return line;
}

TEST(TimelinePlot, DrawsTheCurveAboveTheFloor) {
  TimelineModel timeline = timeline_of({{0, 10, 10}, {1, 10, 10}, {2, 100, 100}, {3, 10, 10}});
  timeline.floor = {{0, 10, 10}};

  const Plot plot = draw_timeline(timeline, 4, 4, false);

  EXPECT_EQ(line_of(plot, 0), "  **") << "up and down again";
  EXPECT_EQ(line_of(plot, 3), "####");
}

TEST(TimelinePlot, LeavesOutWhatWasNotSampled) {
  const Plot plot = draw_timeline(timeline_of({{2, 50, 50}, {3, 50, 50}}), 4, 3, false);

  EXPECT_EQ(line_of(plot, 0) + line_of(plot, 1) + line_of(plot, 2), "      **    ");
}

TEST(TimelinePlot, UsesEveryBrailleDot) {
  TimelineModel timeline = timeline_of({{0, 0, 100}, {1, 0, 100}});
  timeline.to_s = 2.0;

  const Plot plot = draw_timeline(timeline, 1, 1, true);

  EXPECT_EQ(plot.at(0, 0).glyph, "⣿");
}

TEST(TimelinePlot, DrawsALimitThatIsInSight) {
  TimelineModel timeline = timeline_of({{0, 90, 90}, {3, 90, 90}});
  timeline.limit_bytes = 100.0;

  const Plot plot = draw_timeline(timeline, 4, 3, false);

  EXPECT_EQ(line_of(plot, 0), "----");
  timeline.limit_bytes = 1000.0;
  EXPECT_EQ(line_of(draw_timeline(timeline, 4, 3, false), 0).find('-'), std::string::npos);
}

TEST(TimelinePlot, OfNothingIsEmpty) {
  EXPECT_EQ(line_of(draw_timeline(timeline_of({}), 4, 1, true), 0), "    ");
  EXPECT_TRUE(draw_timeline(timeline_of({}), 0, 0, true).cells.empty());
}

}  // namespace
}  // namespace tidemark::dashboard
