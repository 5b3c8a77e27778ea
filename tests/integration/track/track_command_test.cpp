// SPDX-License-Identifier: Apache-2.0
// `tidemark track` as a user runs it: every kind of recording, and what runs.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

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
using tests::tool_path;

// 1000 MB, and 1 MB more every ten seconds after the first ten minutes; 40 minutes in all.
double leaking_mb(int t_s) { return 1000.0 + std::max(0, t_s - 600) / 10.0; }
double flat_mb(int t_s) { return 1000.0 + (t_s % 30 == 0 ? 0.5 : 0.0); }

std::string curve(const std::function<std::string(int, double)>& line, double (*mb)(int)) {
  std::string text;
  for (int t = 0; t < 2400; t += 10) {
    text += line(t, mb(t));
  }
  return text;
}

std::string csv(double (*mb)(int)) {
  return "time_s,rss_mb\n" +
         curve([](int t, double y) { return fmt::format("{},{:.1f}\n", t, y); }, mb);
}

std::string mprof(double (*mb)(int)) {
  return "CMDLINE python train.py\n" +
         curve([](int t, double y) { return fmt::format("MEM {:.1f} {}.0\n", y, 1700000000 + t); },
               mb);
}

std::string psrecord(double (*mb)(int)) {
  return "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n" +
         curve(
             [](int t, double y) {
               return fmt::format("{:12.3f} {:12.3f} {:12.3f} {:12.3f}\n", t * 1.0, 50.0, y,
                                  9000.0);
             },
             mb);
}

std::string json_series(double (*mb)(int)) {
  json x = json::array();
  json y = json::array();
  for (int t = 0; t < 2400; t += 10) {
    x.push_back(t);
    y.push_back(mb(t));
  }
  return json{{"series", {{{"id", "run"}, {"unit", "seconds"}, {"x", x}, {"y_mb", y}}}}}.dump();
}

struct Format {
  const char* name;
  std::string (*write)(double (*mb)(int));
};

class TrackRecording : public testing::TestWithParam<Format> {};

TEST_P(TrackRecording, FindsTheLeakInEveryFormat) {
  const TempTree dir;
  dir.write("run", GetParam().write(leaking_mb));

  const Output output = run_tool({"track", dir.path("run"), "--warmup", "10min", "--json"});

  EXPECT_EQ(output.exit_code, 1) << output.err;
  const json answer = json::parse(output.out);
  EXPECT_EQ(answer.at("verdict"), "leak");
  EXPECT_EQ(answer.at("metric"), "rss");
  EXPECT_NEAR(answer.at("floor_bytes").at("last").get<double>(), 1179e6, 80e6);
}

TEST_P(TrackRecording, CallsAFlatCurveStable) {
  const TempTree dir;
  dir.write("run", GetParam().write(flat_mb));

  const Output output = run_tool({"track", dir.path("run"), "--warmup", "10min"});

  EXPECT_EQ(output.exit_code, 0) << output.out;
  EXPECT_THAT(output.out, StartsWith("No leak"));
}

INSTANTIATE_TEST_SUITE_P(Formats, TrackRecording,
                         testing::Values(Format{"csv", csv}, Format{"mprof", mprof},
                                         Format{"psrecord", psrecord}, Format{"json", json_series}),
                         [](const auto& format) { return std::string(format.param.name); });

TEST(TrackCommand, ReadsTheStandardInput) {
  Subprocess tool({tool_path(), "track", "-", "--warmup", "10min"});
  tool.send(csv(leaking_mb));
  tool.close_input();

  EXPECT_EQ(tool.wait(), 1) << tool.errors();
  EXPECT_THAT(tool.output(), StartsWith("LEAK: rss of "));
}

TEST(TrackCommand, CannotTellFromGrowthInsideTheAllowance) {
  const TempTree dir;
  dir.write("run", "step,rss_mb\n10,100\n20,200\n30,300\n40,400\n50,500\n60,600\n70,700\n");

  const Output output = run_tool({"track", dir.path("run")});

  EXPECT_EQ(output.exit_code, 4);
  EXPECT_THAT(output.out, StartsWith("LIKELY LEAK ("));
  EXPECT_THAT(output.out, HasSubstr("Warm-up would also fit."));
  EXPECT_THAT(output.out, HasSubstr("more steps"));
}

TEST(TrackCommand, ForecastsTheGivenLimit) {
  const TempTree dir;
  dir.write("run", csv(leaking_mb));

  const json answer = json::parse(
      run_tool({"track", dir.path("run"), "--warmup", "10min", "--limit", "2GB", "--json"}).out);

  // 820 MB are left, at 6 MB a minute.
  EXPECT_EQ(answer.at("forecast").at("limit_bytes"), 2'000'000'000);
  EXPECT_NEAR(answer.at("forecast").at("in_s_low").get<double>(), 8200, 1500);
  EXPECT_NEAR(answer.at("forecast").at("in_s_high").get<double>(), 8200, 1500);
}

TEST(TrackCommand, TakesSlowGrowthForNoLeakWhenToldSo) {
  const TempTree dir;
  dir.write("run", csv(leaking_mb));

  const Output output =
      run_tool({"track", dir.path("run"), "--warmup", "10min", "--min-leak", "100MB/min"});

  EXPECT_NE(output.exit_code, 1) << output.out;
}

TEST(TrackCommand, SaysWhatIsWrongWithItsUse) {
  const auto usage = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "track");
    const Output output = run_tool(arguments);
    EXPECT_EQ(output.exit_code, 2) << output.err;
    return output.err;
  };

  EXPECT_THAT(usage({}), HasSubstr("say what to judge"));
  EXPECT_THAT(usage({"run", "--pid", "1"}), HasSubstr("exclude each other"));
  EXPECT_THAT(usage({"run", "-o", "x"}), HasSubstr("--output is for watching"));
  EXPECT_THAT(usage({"run", "--last"}), HasSubstr("--last judges the run that was watched last"));
  EXPECT_THAT(usage({"--last", "--pid", "1"}), HasSubstr("--last judges"));
  EXPECT_THAT(usage({"run", "--warmup", "soon"}), HasSubstr("10min, 200steps, auto"));
  EXPECT_THAT(usage({"run", "--metric", "vsz"}), HasSubstr("footprint, rss, pss, uss or gpu"));
}

TEST(TrackCommand, SaysThatNoRunIsKept) {
  const TempTree dir;
  const auto judge_last = [&] {
    Subprocess tool(
        {"/usr/bin/env", "XDG_CACHE_HOME=" + dir.path(), tool_path(), "track", "--last"});
    EXPECT_EQ(tool.wait(), 3);
    return tool.errors();
  };
  EXPECT_THAT(judge_last(), HasSubstr("no run is kept in " + dir.path("tidemark/runs")));

  dir.write("tidemark/runs/run-1.tidemark", "this is no run");
  EXPECT_THAT(judge_last(), HasSubstr("the last run is " + dir.path("tidemark/runs/run-1")));
}

TEST(TrackCommand, ExitsWithThreeWhenThereIsNothingToRead) {
  const TempTree dir;

  EXPECT_EQ(run_tool({"track", dir.path("nothing")}).exit_code, 3);
  EXPECT_EQ(run_tool({"track", "--", dir.path("no-command")}).exit_code, 3);
}

TEST(TrackCommand, JudgesWhatCameBeforeTheDamageAndStillFails) {
  const TempTree dir;
  std::string text = csv(leaking_mb);
  for (int i = 0; i < 20; ++i) {
    text += "broken,line\n";
  }
  dir.write("run", text);

  const Output output = run_tool({"track", dir.path("run"), "--warmup", "10min"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.out, StartsWith("LEAK"));
  EXPECT_THAT(output.err, HasSubstr("the verdict is on what came before the error"));
}

TEST(TrackCommand, CannotTellFromAMetricThatWasNotRecorded) {
  const TempTree dir;
  dir.write("run", csv(leaking_mb));

  const Output output = run_tool({"track", dir.path("run"), "--metric", "gpu", "--json"});

  EXPECT_EQ(output.exit_code, 4);
  EXPECT_TRUE(json::parse(output.out).at("verdict").is_null());
}

TEST(TrackCommand, KeepsStandardOutputPureAroundACommand) {
  const Output output = run_tool(
      {"track", "--interval", "50ms", "--json", "--", "sh", "-c", "echo noise; sleep 0.6"});

  const json answer = json::parse(output.out);
  EXPECT_EQ(answer.at("schema"), 1);
  EXPECT_THAT(output.err, HasSubstr("noise"));
  EXPECT_EQ(output.exit_code, answer.at("undetermined") == true ? 4 : 0) << output.out;
}

TEST(TrackCommand, SaysBothThatTheCommandFailedAndTheVerdict) {
  const Output output =
      run_tool({"track", "--interval", "50ms", "--", "sh", "-c", "sleep 0.6; exit 7"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err, HasSubstr("failed with status 7; the verdict on its memory is "));
  EXPECT_THAT(output.err, HasSubstr("floor    "));
  EXPECT_EQ(output.out, "");
}

TEST(TrackCommand, GivesTheVerdictOnCtrlC) {
  Subprocess target({"sleep", "60"});
  Subprocess tool({tool_path(), "track", "--interval", "50ms", "--pid",
                   std::to_string(target.pid()), "--duration", "20s"});
  tool.close_input();
  tool.read_until("stable");  // a line as it goes

  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 0) << tool.output();
  EXPECT_THAT(tool.output(), HasSubstr("\nNo leak, stable: footprint of "));
}

TEST(TrackCommand, IsNoFailureOfTheCommandWhenTheUserEndsIt) {
  Subprocess tool(
      {tool_path(), "track", "--interval", "50ms", "--", "sh", "-c", "echo ready; exec sleep 60"});
  tool.close_input();
  tool.read_until("ready");
  ::usleep(700'000);  // more samples than any verdict needs

  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 0) << tool.errors();
}

TEST(TrackCommand, SaysTheSameOfARunAndOfItsRecording) {
  const TempTree dir;
  const std::string file = dir.path("run.tidemark");
  const tests::TrainingTree tree({"--grow-mb-per-s", "40"});

  const Output live =
      run_tool({"track", "--json", "--interval", "50ms", "--duration", "3s", "--warmup", "1s", "-o",
                file, "--pid", std::to_string(tree.root())});
  const Output later = run_tool({"track", "--json", "--warmup", "1s", file});

  EXPECT_EQ(live.exit_code, later.exit_code);
  EXPECT_EQ(live.out, later.out);
}

TEST(TrackCommand, FindsTheTrainerThatGrowsWhileItRuns) {
  const tests::TrainingTree tree({"--grow-mb-per-s", "40"});

  const Output output = run_tool({"track", "--interval", "50ms", "--duration", "4s", "--warmup",
                                  "1s", "--pid", std::to_string(tree.root())});

  EXPECT_EQ(output.exit_code, 1) << output.out;
  EXPECT_THAT(output.out,
              HasSubstr(fmt::format("trainer, pid {}", tree.truth().at("trainer").get<pid_t>())));
}

// What docs/job-server.md says of servers.
TEST(TrackCommand, CountsTheJobsOfAServerAsSteps) {
  const std::string server =
      "import time\nkept = []\nfor job in range(1, 61):\n"
      "    kept.append(b'x' * (1 << 20))\n    print('job', job, 'done', flush=True)\n"
      "    time.sleep(0.05)\n";

  const Output output =
      run_tool({"track", "--json", "--interval", "50ms", "--warmup", "5steps", "--step-regex",
                "^job (\\d+)", "--", "/usr/bin/python3", "-c", server});

  const json verdict = json::parse(output.out, nullptr, false);
  ASSERT_FALSE(verdict.is_discarded()) << output.err;
  EXPECT_EQ(verdict.at("axis"), "steps");
  EXPECT_EQ(verdict.at("verdict"), "leak");
  ASSERT_FALSE(verdict.at("patterns").empty());
  const double per_job = verdict.at("patterns").at(0).at("rate_bytes_per_step");
  EXPECT_NEAR(per_job, 1 << 20, 0.1 * (1 << 20));
}

}  // namespace
}  // namespace tidemark
