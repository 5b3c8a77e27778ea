// SPDX-License-Identifier: Apache-2.0
#include "common/units.h"

#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "common/records.h"

namespace tidemark {
namespace {

TEST(ParseSize, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(*parse_size_bytes("4096B"), 4096U);
  EXPECT_EQ(*parse_size_bytes("64KiB"), 65536U);
  EXPECT_EQ(*parse_size_bytes("1.5GiB"), 1610612736U);
  EXPECT_EQ(*parse_size_bytes("200MB"), 200000000U);
  EXPECT_EQ(*parse_size_bytes("2 G"), 2147483648U);
}

TEST(ParseSize, KnowsItsUnitsInAnyCase) {
  for (const char* text : {"4g", "4G", "4gib", "4GIB", "4GiB", "4 gIb"}) {
    ASSERT_TRUE(parse_size_bytes(text)) << text;
    EXPECT_EQ(*parse_size_bytes(text), 4 * kGiB) << text;
  }
  for (const char* text : {"4gb", "4GB", "4Gb"}) {
    ASSERT_TRUE(parse_size_bytes(text)) << text;
    EXPECT_EQ(*parse_size_bytes(text), 4'000'000'000U) << text;
  }
  EXPECT_EQ(*parse_size_bytes("12b"), 12U);
}

TEST(ParseSize, WithoutAUnitIsZeroOrAnError) {
  EXPECT_EQ(*parse_size_bytes("0"), 0U);
  EXPECT_EQ(*parse_size_bytes("0.0"), 0U);
  const auto size = parse_size_bytes(" 100 ");
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, Errc::kUsage);
  EXPECT_EQ(size.error().what, "' 100 ' has no unit: say 100MiB or 100GiB");
  EXPECT_EQ(parse_size_bytes("1.5").error().what, "'1.5' has no unit: say 1.5MiB or 1.5GiB");
}

TEST(ParseSize, RefusesNonsense) {
  for (const char* text : {"", "MB", "-1MB", "1e9", "0x10", "inf", "nan", "12 parsecs", "1..5G",
                           "99999999999TB", "."}) {
    const auto size = parse_size_bytes(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, Errc::kUsage);
    EXPECT_NE(size.error().what.find("1.5GiB"), std::string::npos) << "shows how to write it";
  }
}

TEST(ParseDuration, KnowsItsUnits) {
  EXPECT_EQ(*parse_duration_ns("500ms"), 500'000'000);
  EXPECT_EQ(*parse_duration_ns("10s"), 10'000'000'000);
  EXPECT_EQ(*parse_duration_ns("5min"), 300'000'000'000);
  EXPECT_EQ(*parse_duration_ns("2h"), 7'200'000'000'000);
  EXPECT_EQ(*parse_duration_ns("1.5S"), 1'500'000'000);
  EXPECT_FALSE(parse_duration_ns("10 fortnights"));
  EXPECT_FALSE(parse_duration_ns("-1s"));
}

TEST(ParseDuration, WithoutAUnitIsZeroOrAnError) {
  EXPECT_EQ(*parse_duration_ns("0"), 0);
  const auto duration = parse_duration_ns("30");
  ASSERT_FALSE(duration);
  EXPECT_EQ(duration.error().code, Errc::kUsage);
  EXPECT_EQ(duration.error().what, "'30' has no unit: say 30s or 30min");
}

TEST(ParseRate, PerStepAndPerTime) {
  const auto per_step = parse_rate("1MiB/step");
  ASSERT_TRUE(per_step);
  EXPECT_EQ(per_step->unit, RateUnit::kStep);
  EXPECT_DOUBLE_EQ(per_step->bytes_per_unit(), 1048576.0);

  const auto per_minute = parse_rate("20MB/min");
  ASSERT_TRUE(per_minute);
  EXPECT_EQ(per_minute->unit, RateUnit::kSecond);
  EXPECT_DOUBLE_EQ(per_minute->bytes_per_unit(), 20e6 / 60.0);

  const auto window = parse_rate("200MB/10s");
  ASSERT_TRUE(window);
  EXPECT_DOUBLE_EQ(window->per, 10.0);
  EXPECT_DOUBLE_EQ(window->bytes, 200e6);
}

TEST(ParseRate, NeedsBothUnits) {
  EXPECT_EQ(parse_rate("100/step").error().what,
            "'100/step' has no unit: say 100KiB/step or 100MiB/step");
  EXPECT_EQ(parse_rate("200MB/10").error().what,
            "'200MB/10' has no unit: say 200MB/10s or 200MB/10steps");
  EXPECT_DOUBLE_EQ(parse_rate("0/min")->bytes_per_unit(), 0.0);
  EXPECT_DOUBLE_EQ(parse_rate("20mb/MIN")->bytes_per_unit(), 20e6 / 60.0);
  EXPECT_EQ(parse_rate("1mib/Step")->unit, RateUnit::kStep);
}

TEST(ParseRate, RefusesNonsense) {
  for (const char* text :
       {"1MB", "/min", "1MB/", "1MB/0s", "1MB/banana", "1MB/-1s", "1MB/0", "100/", "/"}) {
    EXPECT_FALSE(parse_rate(text)) << text;
  }
}

TEST(FormatBytes, AlwaysCarriesTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(327155712), "312 MiB");
  EXPECT_EQ(format_bytes(18790481920), "17.5 GiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16384 PiB");
}

TEST(FormatBytes, DeltaHasASign) {
  EXPECT_EQ(format_bytes_delta(0), "+0 B");
  EXPECT_EQ(format_bytes_delta(-314572800), "-300 MiB");
  EXPECT_EQ(format_bytes_delta(INT64_MIN), "-8192 PiB");
}

TEST(FormatDuration, ReadsWellAtEveryScale) {
  EXPECT_EQ(format_duration(0.25), "0.25 s");
  EXPECT_EQ(format_duration(12.2), "12 s");
  EXPECT_EQ(format_duration(200), "3 min 20 s");
  EXPECT_EQ(format_duration(7500), "2 h 05 min");
  EXPECT_EQ(format_duration(90000), "1 d 01 h");
}

TEST(FormatClock, CountsDays) {
  EXPECT_EQ(format_clock(200), "00:03:20");
  EXPECT_EQ(format_clock(2 * 86400 + 3661), "2d 01:01:01");
}

TEST(FormatBytes, TakesFractionsAndUnknownFigures) {
  EXPECT_EQ(format_bytes(-1536.0), "-1.50 KiB");
  EXPECT_EQ(format_bytes(-0.2), "0 B");
  EXPECT_EQ(format_bytes_delta(-0.2), "+0 B");
  EXPECT_EQ(format_bytes(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(format_bytes(std::optional<std::uint64_t>()), "?");
  EXPECT_EQ(format_bytes_delta(std::optional<std::int64_t>(2048)), "+2.00 KiB");
}

TEST(FormatRate, GivesSmallFiguresForALargerUnit) {
  EXPECT_EQ(format_rate(2048.0, RateUnit::kStep), "2.00 KiB/step");
  EXPECT_EQ(format_rate(10.0, RateUnit::kStep), "9.77 KiB/1000 steps");
  EXPECT_EQ(format_rate(100.0, RateUnit::kSecond), "352 KiB/h");
  EXPECT_EQ(format_rate(100.0, RateUnit::kSecond, {.has_sign = true, .has_fixed_unit = true}),
            "+5.86 KiB/min");
  EXPECT_EQ(format_rate(-2048.0, RateUnit::kStep, {.has_sign = true}), "-2.00 KiB/step");
}

TEST(FormatCount, KnowsOneFromSeveral) {
  EXPECT_EQ(format_count(1, "process", "processes"), "1 process");
  EXPECT_EQ(format_count(0, "process", "processes"), "0 processes");
  EXPECT_EQ(format_count(2, "run"), "2 runs");
  EXPECT_EQ(format_grouped(1234567), "1,234,567");
  EXPECT_EQ(format_grouped(999), "999");
  EXPECT_EQ(format_percent(0.125, 1), "12.5 %");
}

TEST(FormatPlace, IsAStepOrATime) {
  EXPECT_EQ(format_place(90.0, RateUnit::kStep), "step 90");
  EXPECT_EQ(format_place(90.0, RateUnit::kSecond), "00:01:30");
}

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
