// SPDX-License-Identifier: Apache-2.0
// `tidemark monitor --replay` of what other tools have recorded: what they did not know is not made
// up.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using tests::json_lines;
using tests::of_kind;
using tests::Output;
using tests::run_tool;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

class ReplayCommand : public testing::Test {
 protected:
  Output replay(const std::string& content, const std::string& format = "--plain") {
    dir_.write("recording", content);
    return run_tool({"monitor", "--replay", dir_.path("recording"), format, "--speed", "1000000x"});
  }

  std::vector<std::string> plain_lines(const std::string& content) {
    const Output output = replay(content);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_EQ(output.err, "");
    return lines_of(output.out);
  }

  const tests::TempTree dir_;
};

constexpr const char* kHeader =
    "PID                  ROLE                FOOTPRINT        RSS  COMMAND";

TEST_F(ReplayCommand, OfStepsAndRssShowsStepsAndRssOnly) {
  EXPECT_THAT(
      plain_lines("step,rss_mb\n10,100\n20,110\n30,120\n"),
      ElementsAre(
          kHeader,  //
          "?                    trainer                     ?    100 MiB  ?",
          "step 10  tree rss 100 MiB (+0 B since start, +0 B since last)  trainer rss 100 MiB",
          "step 20  tree rss 110 MiB (+10.0 MiB since start, +10.0 MiB since last)  "
          "trainer rss 110 MiB",
          "step 30  tree rss 120 MiB (+20.0 MiB since start, +10.0 MiB since last)  "
          "trainer rss 120 MiB",
          "summary: 30 steps in 3 samples, 0 started, 0 exited",
          "  tree rss               100 MiB -> 120 MiB, peak 120 MiB at step 30, growth +20.0 "
          "MiB, "
          "+1.00 MiB/step",
          "  trainer x1 rss         100 MiB -> 120 MiB, peak 120 MiB at step 30, growth +20.0 "
          "MiB, "
          "+1.00 MiB/step"));
}

TEST_F(ReplayCommand, OfMprofShowsTimesThatDiffer) {
  EXPECT_THAT(
      plain_lines("CMDLINE python train.py\n"
                  "MEM 100.0 1700000000.0\nMEM 101.0 1700000000.1\nMEM 103.0 1700000000.2\n"),
      ElementsAre(
          kHeader,  //
          "?                    trainer                     ?    100 MiB  python train.py",
          "00:00:00.00  tree rss 100 MiB (+0 B since start, +0 B since last)  trainer rss 100 MiB",
          "00:00:00.10  tree rss 101 MiB (+1.00 MiB since start, +1.00 MiB since last)  "
          "trainer rss 101 MiB",
          "00:00:00.20  tree rss 103 MiB (+3.00 MiB since start, +2.00 MiB since last)  "
          "trainer rss 103 MiB",
          "summary: 0.20 s in 3 samples, 0 started, 0 exited",
          "  tree rss               100 MiB -> 103 MiB, peak 103 MiB at 00:00:00.20, growth "
          "+3.00 MiB, +900 MiB/min",
          "  trainer x1 rss         100 MiB -> 103 MiB, peak 103 MiB at 00:00:00.20, growth "
          "+3.00 MiB, +900 MiB/min"));
}

TEST_F(ReplayCommand, OfMprofShowsChildrenBesideTheMainProcess) {
  const auto lines = lines_of(replay("CMDLINE python train.py\nMEM 100.0 1700000000.0\n"
                                     "CHLD 0 10.0 1700000000.0\nCHLD 1 20.0 1700000000.0\n")
                                  .out);

  ASSERT_GE(lines.size(), 5U);
  EXPECT_THAT(lines[1], HasSubstr("python train.py"));
  EXPECT_THAT(lines[2], HasSubstr("[child 0]"));
  EXPECT_THAT(lines[3], StartsWith("1 "));
  EXPECT_THAT(lines[4], HasSubstr("tree rss 130 MiB"));
  EXPECT_THAT(lines[4], HasSubstr("other x2 rss 30.0 MiB"));
}

TEST_F(ReplayCommand, MasksTheSecretsOfACommandThatAnotherToolLogged) {
  for (const char* format : {"--plain", "--json"}) {
    const Output output =
        replay("CMDLINE python train.py --token abc123\nMEM 100.0 1700000000.0\n", format);

    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_THAT(output.out, HasSubstr("python train.py --token ***")) << format;
    EXPECT_THAT(output.out, testing::Not(HasSubstr("abc123"))) << format;
  }
}

TEST_F(ReplayCommand, OfPsrecordShowsRss) {
  const auto lines = plain_lines(
      "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n"
      "       0.000        0.000       10.000      100.000\n"
      "       0.100       50.000       12.000      100.000\n");

  ASSERT_EQ(lines.size(), 7U);
  EXPECT_THAT(lines[1], StartsWith("?                    trainer "));
  EXPECT_THAT(lines[2], StartsWith("00:00:00.00  tree rss 10.0 MiB (+0 B since start"));
  EXPECT_THAT(lines[3],
              StartsWith("00:00:00.10  tree rss 12.0 MiB (+2.00 MiB since start, +2.00 MiB since"));
  EXPECT_THAT(lines[4], StartsWith("summary: 0.10 s in 2 samples"));
  EXPECT_THAT(lines[5], StartsWith("  tree rss               10.0 MiB -> 12.0 MiB"));
}

TEST_F(ReplayCommand, OfJsonSeriesShowsEachSeriesOnce) {
  std::string series;
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    series += std::string(series.empty() ? "" : ",") + R"({"id":")" + id +
              R"(","unit":"steps","x":[0,5],"y_mb":[100,150]})";
  }

  const auto lines = plain_lines(R"({"series":[)" + series + "]}");

  ASSERT_EQ(lines.size(), 11U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_THAT(lines[1 + i], StartsWith("?                    other                       ?"));
    EXPECT_THAT(lines[1 + i], HasSubstr(std::string("[") + static_cast<char>('a' + i) + "]"));
  }
  EXPECT_EQ(lines[7],
            "step 5  tree rss 750 MiB (+250 MiB since start, +250 MiB since last)  "
            "other x5 rss 750 MiB");
  EXPECT_THAT(lines[8], StartsWith("summary: 5 steps in 2 samples"));
  EXPECT_THAT(lines[9], HasSubstr("growth +250 MiB, +50.0 MiB/step"));
}

TEST_F(ReplayCommand, SaysWhatTheFileKnowsWhereThatIsNotRss) {
  const Output pss = replay("t_s,pss_mb\n0,100\n1,200\n");
  EXPECT_THAT(pss.out, HasSubstr("00:00:00.00  tree pss 100 MiB (+0 B since start"));
  EXPECT_THAT(pss.out, HasSubstr("\n  tree pss               100 MiB -> 200 MiB"));

  const Output uss = replay("t_s,uss_mb\n0,100\n1,200\n");
  EXPECT_THAT(uss.out, HasSubstr("00:00:00.00  tree ?  trainer ?\n"));
  EXPECT_THAT(uss.out, HasSubstr("\n  tree rss               ?\n"));

  const Output footprint = replay("t_s,footprint_mb\n0,100\n1,200\n");
  EXPECT_THAT(footprint.out, HasSubstr("tree 100 MiB (+0 B since start, +0 B since last)  rss ?"));
}

TEST_F(ReplayCommand, AsJsonHasNoTimeWhereTheFileHasNone) {
  const Output output = replay("step,epoch,rss_mb\n10,1,100\n20,2,110\n", "--json");

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto lines = json_lines(output.out);
  for (const nlohmann::json& line : lines) {
    EXPECT_TRUE(line.at("t_s").is_null()) << line;
  }
  const auto ticks = of_kind(lines, "tick");
  ASSERT_EQ(ticks.size(), 2U);
  EXPECT_EQ(ticks[1].at("step"), 20);
  EXPECT_TRUE(ticks[1].at("markers").at(0).at("t_s").is_null());
  EXPECT_TRUE(lines.back().at("summary").at("rss").at("growth_bytes_per_s").is_null());
}

TEST_F(ReplayCommand, AsJsonHasNoRssWhereTheFileHasNone) {
  const Output output = replay("t_s,pss_mb\n0,100\n", "--json");

  const auto lines = json_lines(output.out);
  const auto ticks = of_kind(lines, "tick");
  ASSERT_EQ(ticks.size(), 1U);
  EXPECT_TRUE(ticks[0].at("tree").at("rss_bytes").is_null());
  EXPECT_EQ(ticks[0].at("tree").at("pss_bytes"), 100 << 20);
  EXPECT_TRUE(lines.back().at("summary").at("rss").is_null());
}

TEST_F(ReplayCommand, RefusesWhatIsForWatchingOnly) {
  dir_.write("recording", "t_s,rss_mb\n0,100\n");
  for (const std::vector<std::string>& only_watching :
       {std::vector<std::string>{"--interval", "2s"},
        {"--pss", "off"},
        {"--warn-growth", "off"},
        {"--warn-growth", "1MiB/min"},
        {"--log-file", "x"}}) {
    std::vector<std::string> arguments{"monitor", "--replay", dir_.path("recording")};
    arguments.insert(arguments.end(), only_watching.begin(), only_watching.end());

    const Output output = run_tool(arguments);

    EXPECT_EQ(output.exit_code, 2) << only_watching[0];
    EXPECT_THAT(output.err, HasSubstr("--replay plays a recording")) << only_watching[0];
    EXPECT_THAT(output.err, HasSubstr(only_watching[0]));
  }
}

TEST_F(ReplayCommand, OfOneSampleSaysSo) {
  EXPECT_THAT(replay("t_s,rss_mb\n0,100\n").out, HasSubstr(" in 1 sample, "));
}

}  // namespace
}  // namespace tidemark
