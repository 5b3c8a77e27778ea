// SPDX-License-Identifier: Apache-2.0
#include "check/config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"

namespace tidemark::check {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A configuration with one check that has these further keys.
std::string one_check(const std::string& keys) {
  return R"({"schema": 1, "checks": [{"name": "train", "command": ["true"])" +
         (keys.empty() ? "" : ", " + keys) + "}]}";
}

std::string error_of(const std::string& text, const CheckValues& over = {}) {
  const auto config = parse_check_config(text, over);
  EXPECT_FALSE(config) << text;
  return config ? "" : config.error().what;
}

CheckSpec spec_of(const std::string& keys, const CheckValues& over = {}) {
  const auto config = parse_check_config(one_check(keys), over);
  EXPECT_TRUE(config) << (config ? "" : config.error().what);
  return config ? config->checks.front() : CheckSpec{};
}

TEST(CheckConfig, ReadsChecksDefaultsAndSuppressions) {
  const auto config = parse_check_config(R"({
    "schema": 1,
    "defaults": {"warmup": "20steps", "max_growth": "1MiB/step"},
    "checks": [
      {"name": "train", "command": ["python", "train.py"], "repeat": 3, "profile": true},
      {"name": "eval", "command": ["./eval"], "max_growth": "0", "timeout": "5min"}
    ],
    "suppressions": [
      {"site": "fill_cache*", "reason": "bounded, see #12", "expires": "2027-01-31", "checks": ["train"]}
    ]
  })");

  ASSERT_TRUE(config) << config.error().what;
  ASSERT_EQ(config->checks.size(), 2U);
  const CheckSpec& train = config->checks[0];
  EXPECT_EQ(train.name, "train");
  EXPECT_THAT(train.command, ElementsAre("python", "train.py"));
  EXPECT_EQ(train.warmup.steps, 20.0);
  EXPECT_EQ(train.repeat, 3U);
  EXPECT_TRUE(train.profile);
  EXPECT_EQ(train.budgets.memory.growth->unit, RateUnit::kStep);
  EXPECT_EQ(config->checks[1].budgets.memory.growth->bytes, 0.0);
  EXPECT_EQ(config->checks[1].timeout_ns, 300 * kNsPerSecond);
  ASSERT_EQ(config->suppressions.size(), 1U);
  EXPECT_EQ(config->suppressions[0].site, "fill_cache*");
  EXPECT_EQ(date_text(config->suppressions[0].expires), "2027-01-31");
  EXPECT_THAT(config->suppressions[0].checks, ElementsAre("train"));
}

TEST(CheckConfig, TheCommandLineCountsMoreThanTheFile) {
  EXPECT_EQ(spec_of(R"("repeat": 3)", {{"repeat", "5"}}).repeat, 5U);
}

TEST(CheckConfig, NamesTheLineOfWhatIsNoJson) {
  EXPECT_THAT(error_of("{\n \"schema\": 1,\n \"checks\": oops\n}"),
              HasSubstr("line 3, column 12: this is no JSON"));
  EXPECT_THAT(error_of(""), HasSubstr("line 1"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("no JSON object"));
}

TEST(CheckConfig, NamesTheKeyOfWhatIsWrong) {
  EXPECT_THAT(error_of(R"({"schema": 2, "checks": []})"), HasSubstr("schema"));
  EXPECT_THAT(error_of(R"({"checks": []})"), HasSubstr("\"schema\": 1 is missing"));
  EXPECT_THAT(error_of(R"({"schema": 1, "checks": []})"), HasSubstr("checks: it takes a list"));
  EXPECT_THAT(error_of(R"({"schema": 1, "check": []})"), HasSubstr("check: there is no such key"));
  EXPECT_THAT(error_of(R"({"schema": 1, "checks": [{"command": ["a"]}]})"),
              HasSubstr("checks[0].name: a check needs a name"));
  EXPECT_THAT(error_of(R"({"schema": 1, "checks": [{"name": "x"}]})"),
              HasSubstr("checks[0] (x).command: a check needs a command"));
  EXPECT_THAT(error_of(R"({"schema": 1, "checks": [{"name": "x", "command": "sh -c x"}]})"),
              HasSubstr("checks[0] (x).command: it takes a list of texts"));
  EXPECT_THAT(error_of(one_check(R"("max_grwth": "1MiB/step")")),
              HasSubstr("checks[0] (train).max_grwth: there is no such setting"));
  EXPECT_THAT(error_of(one_check(R"("max_growth": "fast")")),
              HasSubstr("checks[0] (train): max_growth: 'fast' is not a rate"));
  EXPECT_THAT(error_of(one_check(R"("max_peak": 1.5)")), HasSubstr("max_peak: it takes a text"));
  EXPECT_THAT(error_of(one_check(R"("max_peak": 4)")),
              HasSubstr("max_peak: '4' has no unit: say 4MiB or 4GiB"));
  EXPECT_THAT(error_of(one_check(R"("timeout": "30")")),
              HasSubstr("timeout: '30' has no unit: say 30s or 30min"));
  EXPECT_THAT(error_of(one_check(R"("max_growth": "10/step")")),
              HasSubstr("max_growth: '10/step' has no unit: say 10KiB/step or 10MiB/step"));
  EXPECT_THAT(error_of(one_check(R"("repeat": 0)")), HasSubstr("repeat: '0' is not a number"));
  EXPECT_THAT(error_of(one_check(R"("profile": "yes")")), HasSubstr("neither true nor false"));
  EXPECT_THAT(error_of(R"({"schema": 1, "defaults": {"jobs": "x"}, "checks": [
                       {"name": "x", "command": ["a"]}]})"),
              HasSubstr("defaults: jobs: 'x'"));
}

TEST(CheckConfig, RefusesTwoChecksOfOneName) {
  EXPECT_THAT(error_of(R"({"schema": 1, "checks": [{"name": "x", "command": ["a"]},
                       {"name": "x", "command": ["b"]}]})"),
              HasSubstr("checks[1].name: 'x' is the name of another check"));
}

TEST(CheckConfig, ASuppressionNeedsSiteReasonAndDate) {
  const auto with = [](const std::string& suppression) {
    return R"({"schema": 1, "checks": [{"name": "x", "command": ["a"]}], "suppressions": [)" +
           suppression + "]}";
  };
  EXPECT_THAT(error_of(with(R"({"site": "f", "expires": "2027-01-01"})")),
              HasSubstr("suppressions[0].reason"));
  EXPECT_THAT(error_of(with(R"({"site": "f", "reason": " ", "expires": "2027-01-01"})")),
              HasSubstr("suppressions[0].reason"));
  EXPECT_THAT(error_of(with(R"({"site": "f", "reason": "r"})")),
              HasSubstr("suppressions[0].expires"));
  EXPECT_THAT(error_of(with(R"({"site": "f", "reason": "r", "expires": "2027-02-30"})")),
              HasSubstr("'2027-02-30' is not a date"));
  EXPECT_THAT(error_of(with(R"({"site": "f", "reason": "r", "expires": "soon"})")),
              HasSubstr("suppressions[0].expires: 'soon'"));
  EXPECT_THAT(error_of(with(R"({"size": "f"})")), HasSubstr("suppressions[0].size: there is no"));
}

TEST(CheckConfig, EscapesWhatItQuotes) {
  EXPECT_THAT(error_of("{\"schema\": 1, \"\\u001b[2J\": 1}"), HasSubstr("\\x1b[2J"));
}

TEST(CheckSettings, AreTheSameOnTheCommandLineAndInAFile) {
  for (const CheckSetting& setting : check_settings()) {
    EXPECT_EQ(find_check_setting(setting.key), &setting);
    EXPECT_EQ(option_name(setting).find('_'), std::string::npos);
  }
  EXPECT_EQ(option_name(*find_check_setting("gpu_max_growth")), "--gpu-max-growth");
  EXPECT_EQ(find_check_setting("name"), nullptr);
}

TEST(CheckSettings, ReadTheirValues) {
  const CheckSpec spec = spec_of(
      R"("max_growth": "20MB/min", "max_peak": "4GiB", "max_plateau": "3GiB", "max_processes": 12,
         "max_retained": "100MiB", "gpu_max_growth": "0", "gpu_max_peak": "1GiB",
         "gpu_max_plateau": "1GiB", "gpu_max_retained": "0", "duration": "10s", "interval": "50ms",
         "tolerance": "10%", "history": "h.csv", "commit": "abc", "no_redact": true)");

  EXPECT_NEAR(spec.budgets.memory.growth->bytes_per_unit(), 20e6 / 60, 1);
  EXPECT_EQ(spec.budgets.memory.peak_bytes, 4294967296.0);
  EXPECT_EQ(spec.budgets.processes, 12.0);
  EXPECT_EQ(spec.budgets.gpu.retained_bytes, 0.0);
  EXPECT_EQ(spec.duration_ns, 10 * kNsPerSecond);
  EXPECT_EQ(spec.interval_ns, 50'000'000);
  EXPECT_DOUBLE_EQ(spec.tolerance, 0.1);
  EXPECT_FALSE(spec.redact);
}

TEST(CheckSettings, GrowthCanBeSwitchedOff) {
  EXPECT_TRUE(spec_of(R"("max_growth": "off", "max_peak": "1GiB")").budgets.memory.growth_is_off);
  const CheckSpec again = spec_of(R"("max_growth": "off")", {{"max_growth", "0"}});
  EXPECT_FALSE(again.budgets.memory.growth_is_off);
}

TEST(CheckSettings, GrowthCannotBeSwitchedOffWhereItIsAllThatIsChecked) {
  EXPECT_THAT(error_of(one_check(R"("max_growth": "off")")), HasSubstr("leaves nothing to check"));
  EXPECT_EQ(spec_of(R"("max_growth": "off", "jobs": 2)").jobs, 2U);
  EXPECT_EQ(spec_of(R"("max_growth": "off", "history": "h.csv")").history, "h.csv");
}

TEST(CheckSettings, TellWhatDoesNotFitTogether) {
  EXPECT_THAT(error_of(one_check(R"("log_file": "x", "step_regex": "off")")),
              HasSubstr("off reads no log_file"));
  EXPECT_THAT(error_of(one_check(R"("update_baseline": true)")), HasSubstr("needs baseline"));
  EXPECT_THAT(error_of(one_check(R"("timeout": "1s", "duration": "1s")")), HasSubstr("exclude"));
  EXPECT_THAT(error_of(one_check(R"("jobs": 2, "repeat": 2)")), HasSubstr("exclude"));
  EXPECT_THAT(error_of(one_check(R"("max_job_growth": "1MiB")")), HasSubstr("jobs of 2 or more"));
  EXPECT_THAT(error_of(one_check(R"("interval": "10ms")")), HasSubstr("the shortest is 50ms"));
  EXPECT_THAT(error_of(one_check(R"("tolerance": "5")")), HasSubstr("write it like 5%"));
  EXPECT_THAT(error_of(one_check(R"("timeout": "0s")")), HasSubstr("longer than nothing"));
}

TEST(CheckPage, HasAnExampleThatCanBeRead) {
  const auto page = read_file(TIDEMARK_SOURCE_DIR "/docs/check.md");
  ASSERT_TRUE(page);
  const std::size_t begin = page->find("```json\n") + 8;

  const auto config = parse_check_config(page->substr(begin, page->find("```", begin) - begin));

  ASSERT_TRUE(config) << config.error().what;
  EXPECT_EQ(config->checks.size(), 2U);
  EXPECT_EQ(config->suppressions.size(), 1U);
}

TEST(CheckPage, NamesEverySetting) {
  const auto page = read_file(TIDEMARK_SOURCE_DIR "/docs/check.md");
  ASSERT_TRUE(page);
  for (const CheckSetting& setting : check_settings()) {
    EXPECT_THAT(*page, HasSubstr("`" + std::string(setting.key) + "`"));
  }
}

}  // namespace
}  // namespace tidemark::check
