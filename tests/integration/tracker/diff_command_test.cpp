// SPDX-License-Identifier: Apache-2.0
// `tidemark diff` as a user runs it.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::TempTree;

// 200 samples, one per second: 500 MB, and from the 40th on `mb_per_s` more each second.
std::string csv(double mb_per_s) {
  std::string text = "time_s,rss_mb\n";
  for (int t = 0; t < 200; ++t) {
    text += fmt::format("{},{}\n", t, 500 + (t > 40 ? mb_per_s * (t - 40) : 0.0) + 0.1 * (t % 3));
  }
  return text;
}

TEST(DiffCommand, SaysThatALeakIsGone) {
  const TempTree folder;
  folder.write("before.csv", csv(3));
  folder.write("after.csv", csv(0));

  const Output text =
      run_tool({"diff", "--warmup", "50s", folder.path("before.csv"), folder.path("after.csv")});
  const Output as_json = run_tool(
      {"diff", "--json", "--warmup", "50s", folder.path("before.csv"), folder.path("after.csv")});

  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("B is better: A leaks "));
  const json diff = json::parse(as_json.out);
  EXPECT_EQ(diff.at("overall"), "better");
  EXPECT_EQ(diff.at("a").at("verdict"), "leak");
  EXPECT_EQ(diff.at("b").at("verdict"), "stable");
  EXPECT_EQ(diff.at("aligned").at("on"), "time");
  EXPECT_EQ(diff.at("metric"), "rss");
}

TEST(DiffCommand, ExitsWithZeroAlsoWhenTheSecondIsWorse) {
  const TempTree folder;
  folder.write("before.csv", csv(0));
  folder.write("after.csv", csv(3));

  const Output output =
      run_tool({"diff", "--warmup", "50s", folder.path("before.csv"), folder.path("after.csv")});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out, StartsWith("B is worse: it leaks "));
}

TEST(DiffCommand, RefusesWhatItCannotReadWithItsName) {
  const TempTree folder;
  folder.write("good.csv", csv(0));
  folder.write("bad.csv", "no recording at all\n");

  const Output missing = run_tool({"diff", folder.path("good.csv"), folder.path("missing")});
  const Output bad = run_tool({"diff", folder.path("bad.csv"), folder.path("good.csv")});

  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("missing"));
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_THAT(bad.err, HasSubstr("bad.csv"));
}

TEST(DiffCommand, ComparesWhatTwoToolsRecordedOnTheMeasureThatBothHave) {
  const TempTree folder;
  folder.write("rss.csv", csv(0));
  std::string both = "t_s,scope,pid,role,rss_bytes,footprint_bytes\n";
  for (int t = 0; t < 200; ++t) {
    both += fmt::format("{0},process,7,trainer,500000000,400000000\n", t);
  }
  folder.write("both.csv", both);

  const Output output =
      run_tool({"diff", "--json", folder.path("rss.csv"), folder.path("both.csv")});

  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(json::parse(output.out).at("metric"), "rss");
}

TEST(DiffCommand, NeedsTwoRecordings) {
  EXPECT_EQ(run_tool({"diff", "one.tidemark"}).exit_code, 2);
}

TEST(DiffCommand, AlignsTwoRecordedRunsOnTheirSteps) {
  const TempTree folder;
  const std::string before = folder.path("before.tidemark");
  const std::string after = folder.path("after.tidemark");
  const std::string victim = tests::victim_path("leak_linear");
  Subprocess leaking(
      {tests::tool_path(), "monitor", "--interval", "50ms", "-o", before, "--", victim, "--steps"});
  Subprocess repaired({tests::tool_path(), "monitor", "--interval", "50ms", "-o", after, "--",
                       victim, "--steps", "--leak-mb", "0", "--count", "300"});
  ASSERT_EQ(leaking.wait(), 0) << leaking.errors();
  ASSERT_EQ(repaired.wait(), 0) << repaired.errors();

  const Output output = run_tool({"diff", "--json", "--warmup", "110steps", before, after});

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const json diff = json::parse(output.out);
  EXPECT_EQ(diff.at("overall"), "better") << output.out;
  EXPECT_EQ(diff.at("aligned").at("on"), "steps");
  EXPECT_NEAR(diff.at("aligned").at("to").get<double>(), 300, 10);
  EXPECT_EQ(diff.at("rows").at(1).at("what"), "growth_rate");
  EXPECT_EQ(diff.at("rows").at(1).at("change"), "better");
}

}  // namespace
}  // namespace tidemark
