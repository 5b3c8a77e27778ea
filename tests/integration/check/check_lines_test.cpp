// SPDX-License-Identifier: Apache-2.0
// `tidemark check --profile` on short runs of the trainer harness, whose leaks are known by line.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/text.h"
#include "tests/integration/check/checked_victim.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::check_of;
using tests::Output;
using tests::TempTree;

constexpr double kMiB = 1048576.0;

class LeakOfAShortRun : public testing::TestWithParam<const char*> {};

// 120 steps in two seconds; 600 KiB more at each of them, three times the budget.
TEST_P(LeakOfAShortRun, IsNamedByItsLine) {
  const TempTree folder;
  const Output output = tests::run_tool({"check",
                                         "--profile",
                                         "--interval",
                                         "100ms",
                                         "--max-growth",
                                         "200KiB/step",
                                         "--warmup",
                                         "30steps",
                                         "--json",
                                         folder.path("check.json"),
                                         "--",
                                         TIDEMARK_BINARY_DIR "/bin/tidemark-harness",
                                         "train",
                                         "leak",
                                         "--cause",
                                         GetParam(),
                                         "--mb-per-step",
                                         "0.6",
                                         "--steps",
                                         "180",
                                         "--step-time",
                                         "15ms",
                                         "--mb",
                                         "40",
                                         "--truth",
                                         folder.path("truth.json")});

  ASSERT_EQ(output.exit_code, 1) << output.err;
  const json truth = json::parse(tests::content_of(folder.path("truth.json")));
  const std::string line(basename_of(truth.at("allocating_line").get<std::string>()));
  const json answer = json::parse(tests::content_of(folder.path("check.json")));
  ASSERT_FALSE(check_of(answer).at("growing_lines").empty()) << output.err;
  const json& first = check_of(answer).at("growing_lines").at(0);
  EXPECT_EQ(
      std::string(basename_of(first.at("file").get<std::string>())) + ":" + first.at("line").dump(),
      line);
  EXPECT_NEAR(first.at("growth_bytes_per_step").get<double>(), 0.6 * kMiB, 0.15 * kMiB)
      << first.dump(1);
  const std::string headline = output.err.substr(output.err.find("FAIL "));
  EXPECT_THAT(headline.substr(0, headline.find('\n')), HasSubstr(" " + line));
}

INSTANTIATE_TEST_SUITE_P(Causes, LeakOfAShortRun,
                         testing::Values("native", "collator", "autograd", "optimizer"));

}  // namespace
}  // namespace tidemark
