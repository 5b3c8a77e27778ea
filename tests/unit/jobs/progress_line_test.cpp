// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/progress_line.h"

#include <gtest/gtest.h>

namespace tidemark::harness {
namespace {

TEST(ProgressLine, HasStepLossAndPhase) {
  const auto line = parse_progress_line(R"({"step":10,"loss":0.693,"phase":"eval"})");

  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 10);
  EXPECT_DOUBLE_EQ(*line->loss, 0.693);
  EXPECT_EQ(line->phase, "eval");
}

TEST(ProgressLine, SkipsWhatItDoesNotKnow) {
  const auto line = parse_progress_line(
      R"( { "event" : "step", "note":"a \"quoted\" } word", "ok":true, "step": 3 } )");

  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 3);
  EXPECT_EQ(line->phase, std::nullopt);
}

TEST(ProgressLine, TellsWhetherTheJobWasStopped) {
  EXPECT_EQ(parse_progress_line(R"({"event":"end","stopped":true})")->stopped, true);
  EXPECT_EQ(parse_progress_line(R"({"event":"end","stopped":false})")->stopped, false);
  EXPECT_EQ(parse_progress_line(R"({"event":"end","stopped":null})")->stopped, std::nullopt);
}

TEST(ProgressLine, KeepsUnknownUnknown) {
  const auto line = parse_progress_line(R"({"step":1,"loss":null})");

  ASSERT_TRUE(line);
  EXPECT_EQ(line->loss, std::nullopt);
}

TEST(ProgressLine, MayBeEmpty) { EXPECT_TRUE(parse_progress_line("{}")); }

TEST(ProgressLine, RefusesWhatIsNotAWholeObject) {
  for (const char* text : {"", "step 10", "{", "{\"step\":", "{\"step\":10", "{\"step\":10,",
                           "{\"step\":10,}", "{\"step\" 10}", "{\"ph", "{} {}", "[1]", "{\"a\\"}) {
    EXPECT_FALSE(parse_progress_line(text)) << text;
  }
}

}  // namespace
}  // namespace tidemark::harness
