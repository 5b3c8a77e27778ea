// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/table.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::demo {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr DemoScenario kWarmup{"warmup", "warm-up", "a cache fills", "warmup", 300};
constexpr DemoScenario kLeak{"leak", "leak: native", "a malloc is lost", "leak", 400};

TEST(DemoProgress, SaysFirstHowManyThereAreAndHowLongItTakes) {
  const std::vector<DemoScenario> two{kWarmup, kLeak};

  EXPECT_THAT(demo_opening(two, 2), HasSubstr("2 training jobs"));
  EXPECT_THAT(demo_opening(two, 2), HasSubstr("2 run at a time. This takes about 23 s."));
  EXPECT_THAT(demo_opening(two, 1), Not(HasSubstr("at a time")));
  EXPECT_THAT(demo_opening(two, 1), HasSubstr("This takes about 41 s."));
}

TEST(DemoProgress, SaysWhatStartsAndHowItEnded) {
  DemoGrade grade;
  grade.truth = grade.verdict = tracker::Verdict::kLeak;
  grade.measured_bytes_per_step = 524288;
  grade.outline = {50.0, 100.0};

  EXPECT_EQ(demo_started(3, 7, kLeak), "[3/7] leak: native      starts  a malloc is lost");
  EXPECT_EQ(demo_ended(3, 7, kLeak, grade, 21.4, {}),
            "[3/7] leak: native      right   -#  leak, 512 KiB/step, 21 s");
  EXPECT_EQ(demo_ended(3, 7, kLeak, failed_demo("x", "no device"), 2.0, {}),
            "[3/7] leak: native      FAILED  no device, 2.0 s");
}

TEST(DemoProgress, ShowsHowFarEachHasCome) {
  const std::vector<DemoPlace> places{{&kWarmup, 150.0, 200.0 * (1 << 20)}, {&kLeak, {}, {}}};

  EXPECT_EQ(demo_places(places, 200), "  warm-up [#####.....] 200 MiB   leak: native loading");
  EXPECT_EQ(demo_places(places, 20).size(), 20U);
}

TEST(DemoProgress, FillsTheBarButNeverOverfillsIt) {
  const std::vector<DemoPlace> late{{&kWarmup, 900.0, {}}};
  const std::vector<DemoPlace> early{{&kWarmup, -5.0, {}}};

  EXPECT_THAT(demo_places(late, 200), HasSubstr("[##########] ?"));
  EXPECT_THAT(demo_places(early, 200), HasSubstr("[..........]"));
}

}  // namespace
}  // namespace tidemark::demo
