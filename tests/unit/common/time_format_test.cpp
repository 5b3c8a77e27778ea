// SPDX-License-Identifier: Apache-2.0
#include "common/time_format.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

RunInfo info_of(std::optional<double> interval_s, bool time_is_steps = false) {
  RunInfo info;
  info.interval_s = interval_s;
  info.time_is_steps = time_is_steps;
  return info;
}

TEST(TimeFormat, CutsWholeSecondsAndRoundsDecimals) {
  const TimeFormat whole = TimeFormat::of(info_of(1.0));
  const TimeFormat exact = TimeFormat::of(info_of(0.25));

  EXPECT_EQ(whole.at(59.999), "00:00:59");
  EXPECT_EQ(exact.at(0.29), "00:00:00.29");
  EXPECT_EQ(exact.at(59.999), "00:01:00.00");
  EXPECT_EQ(exact.at(86400.5), "1d 00:00:00.50");
  EXPECT_EQ(exact.at(-1.0), "00:00:00.00");
}

TEST(TimeFormat, HaveDecimalsWhereTheIntervalIsUnknown) {
  EXPECT_EQ(TimeFormat::of(info_of({})).at(1.5), "00:00:01.50");
}

TEST(TimeFormat, AreStepsWhereThereIsNoTime) {
  const TimeFormat steps = TimeFormat::of(info_of({}, true));

  EXPECT_FALSE(steps.has_time());
  EXPECT_EQ(steps.at(0.0), "step 0");
  EXPECT_EQ(steps.at(1234567.0), "step 1234567");
  EXPECT_EQ(steps.at(0.5), "step 0.5");
  EXPECT_EQ(steps.length(200.0), "200 steps");
  EXPECT_EQ(TimeFormat().length(200.0), "3 min 20 s");
}

}  // namespace
}  // namespace tidemark
