// SPDX-License-Identifier: Apache-2.0
// Options of `tidemark monitor`, one by one: what to watch, where steps come from, what is shown.
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using tests::json_lines;
using tests::of_kind;
using tests::Output;
using tests::run_tool;
using tests::Subprocess;
using tests::tool_path;
using tests::victim_path;

// A shell that waits for its input and has become itself: before that it looks like the test.
class WaitingShell {
 public:
  explicit WaitingShell(const std::vector<std::string>& arguments = {})
      : process_(command(arguments)) {
    process_.read_until("up");
  }
  pid_t pid() const { return process_.pid(); }

 private:
  static std::vector<std::string> command(const std::vector<std::string>& arguments) {
    std::vector<std::string> argv{"/bin/sh", "-c", "echo up; read x"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  }

  Subprocess process_;
};

std::set<pid_t> pids_of(const json& tick) {
  std::set<pid_t> pids;
  for (const json& process : tick.at("processes")) {
    pids.insert(process.at("pid").get<pid_t>());
  }
  return pids;
}

TEST(MonitorOptions, SystemWatchesProcessesOfAllTrees) {
  const WaitingShell below_us;

  const Output output =
      run_tool({"monitor", "--system", "--json", "--pss", "off", "--duration", "200ms"});

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto ticks = of_kind(json_lines(output.out), "tick");
  ASSERT_FALSE(ticks.empty());
  EXPECT_THAT(pids_of(ticks.back()),
              IsSupersetOf(std::set<pid_t>{below_us.pid(), ::getpid(), ::getppid()}));
}

TEST(MonitorOptions, PidGivenTwiceWatchesBothAndNobodyElse) {
  const WaitingShell one;
  const WaitingShell two;
  const WaitingShell not_asked_for;

  const Output output = run_tool({"monitor", "--pid", std::to_string(one.pid()), "--pid",
                                  std::to_string(two.pid()), "--json", "--duration", "200ms"});

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const auto ticks = of_kind(json_lines(output.out), "tick");
  ASSERT_FALSE(ticks.empty());
  EXPECT_EQ(pids_of(ticks.back()), (std::set<pid_t>{one.pid(), two.pid()}));
  EXPECT_EQ(ticks.back().at("tree").at("processes"), 2);
}

TEST(MonitorOptions, LogFileGivesTheStepsThatAreWrittenWhileItWatches) {
  const tests::TempTree folder;
  folder.write("job.log", "Step 900 of an earlier run\n");
  const WaitingShell job;
  Subprocess tool({tool_path(), "monitor", "--pid", std::to_string(job.pid()), "--json",
                   "--interval", "50ms", "--step-regex", "Step +(\\d+)", "--log-file",
                   folder.path("job.log")});
  tool.read_until("\"kind\":\"tick\"");
  std::ofstream log(folder.path("job.log"), std::ios::app);

  log << "Step 1 loss=2\n" << std::flush;
  tool.read_until("\"step\":1,");
  log << "noise\nStep 2 loss=1\n" << std::flush;
  tool.read_until("\"step\":2,");
  tool.signal(SIGINT);

  EXPECT_EQ(tool.wait(), 0) << tool.errors();
  const auto ticks = of_kind(json_lines(tool.output()), "tick");
  EXPECT_EQ(ticks.front().at("step"), nullptr) << "what was there before is not of this run";
  EXPECT_EQ(ticks.back().at("step"), 2);
}

TEST(MonitorOptions, SecretsAreMaskedUnlessNoRedactAsksForThem) {
  const WaitingShell job({"--token=hunter22"});
  const std::vector<std::string> watch{"monitor", "--plain", "--duration",
                                       "100ms",   "--pid",   std::to_string(job.pid())};
  std::vector<std::string> watch_openly = watch;
  watch_openly.emplace_back("--no-redact");

  const Output masked = run_tool(watch);
  const Output open = run_tool(watch_openly);

  EXPECT_THAT(masked.out, HasSubstr("--token=***"));
  EXPECT_THAT(masked.out, Not(HasSubstr("hunter22")));
  EXPECT_THAT(open.out, HasSubstr("--token=hunter22"));
}

TEST(MonitorOptions, WarnGrowthCountsInSteps) {
  const Output output = run_tool({"monitor",
                                  "--json",
                                  "--pss",
                                  "off",
                                  "--interval",
                                  "100ms",
                                  "--warn-growth",
                                  "1MiB/step",
                                  "--",
                                  victim_path("leak_linear"),
                                  "--steps",
                                  "--base-mb",
                                  "4",
                                  "--flat-steps",
                                  "0",
                                  "--leak-mb",
                                  "4",
                                  "--count",
                                  "100",
                                  "--step-ms",
                                  "20"});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  std::vector<std::string> warnings;
  for (const json& event : of_kind(json_lines(output.out), "event")) {
    if (event.at("event") == "warn_growth") {
      warnings.push_back(event.at("detail"));
    }
  }
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings.back(), EndsWith(" steps"));
}

// It ends as soon as the tool has its ring open: long before the second tick.
TEST(MonitorOptions, MarkersOfAShortJobArriveHoweverLongTheIntervalIs) {
  const Output output =
      run_tool({"monitor", "--json", "--interval", "50s", "--", "bash", "-c",
                "exec 3< <(for i in {1..250}; do "
                "ls -l /proc/$PPID/fd | grep -q /tidemark-.*/$$- && break; sleep 0.1; done); "
                "sleep 0.5; exec " +
                    victim_path("marking_program") + " 7 8 <&3 >/dev/null"});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  std::vector<std::int64_t> steps;
  for (const json& tick : of_kind(json_lines(output.out), "tick")) {
    for (const json& marker : tick.at("markers")) {
      steps.push_back(marker.at("value").get<std::int64_t>());
    }
  }
  EXPECT_THAT(steps, testing::ElementsAre(7, 8));
}

}  // namespace
}  // namespace tidemark
