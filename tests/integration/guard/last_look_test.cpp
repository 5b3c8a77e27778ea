// SPDX-License-Identifier: Apache-2.0
// Who held the memory: the looks that `tidemark guard` and `monitor` take as a limit comes near.
#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/integration/guard/guard_run.h"
#include "tests/integration/guard/limited_group.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::count_of;
using tests::guard;
using tests::Guarded;
using tests::guarded_job;
using tests::LimitedGroup;
using tests::run_guard;
using tests::run_tool;
using tests::TempTree;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr const char* kPython = "/usr/bin/python3";

// Keeps a MiB every so many seconds, until it has so many; `dataset` is large and does not grow.
constexpr const char* kLeak = R"(
import sys, time
class Collator:
    def __init__(self):
        self.cache = {}
dataset = [bytes(1 << 20) for _ in range(40)]
collator = Collator()
pause, most = float(sys.argv[1]), int(sys.argv[2])
step = 0
while step < most:
    collator.cache[step] = b"x" * (1 << 20)
    step += 1
    time.sleep(pause)
print("done", flush=True)
)";

class LastLookTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kPython, X_OK) != 0) {
      GTEST_SKIP() << "there is no Python";
    }
    dir_.write("leak.py", kLeak);
  }
  std::vector<std::string> leak(const std::string& pause, const std::string& most) const {
    return {kPython, dir_.path("leak.py"), pause, most};
  }
  // In sight at 120 MiB, stopped at 240.
  std::vector<std::string> options(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--limit", "300MiB", "--keep-free", "60MiB", "--interval", "100ms",
                               "-o", run_file()});
    return more;
  }
  std::string run_file() const { return dir_.path("run.tidemark"); }
  nlohmann::json track() const {
    return nlohmann::json::parse(run_tool({"track", run_file(), "--json"}).out, nullptr, false);
  }

  const TempTree dir_;
};

TEST_F(LastLookTest, TheGuardNamesWhoHeldTheMemoryAndStopsInTime) {
  const Guarded run = run_guard(guard(options({}), leak("0.04", "2000")));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.log, AllOf(HasSubstr("STOP: sent SIGTERM"), HasSubstr("; memory was held "),
                             HasSubstr(" by __main__.collator.cache (+"), Not(HasSubstr("KILL")),
                             Not(HasSubstr("beyond the limit")), Not(HasSubstr("no look"))));
  const std::string events = run_tool({"export", run_file(), "--format", "jsonl"}).out;
  EXPECT_THAT(events, HasSubstr("memory was held "));
  // From the run file alone.
  const nlohmann::json last = track()["last_look"];
  ASSERT_TRUE(last.is_object()) << run.log;
  EXPECT_GE(last["looks"], 2);
  EXPECT_EQ(last["holders"][0]["path"], "__main__.collator.cache");
  EXPECT_GT(last["holders"][0]["share_of_growth"], 0.8) << last;
  const std::string text = run_tool({"track", run_file()}).out;
  EXPECT_THAT(text,
              AllOf(HasSubstr("\nlast look  "), HasSubstr("  __main__.collator.cache  dict")));
  const nlohmann::json owners =
      nlohmann::json::parse(run_tool({"owners", run_file(), "--json"}).out, nullptr, false);
  for (const nlohmann::json& look : owners["looks"]) {
    EXPECT_EQ(look["way"], "read") << look;
    EXPECT_EQ(look["paused_ms"], 0) << look;
  }
}

TEST_F(LastLookTest, TheGuardDoesNotLookWhenItIsToldNotTo) {
  const Guarded run = run_guard(guard(options({"--no-last-look"}), leak("0.02", "2000")));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.log, AllOf(HasSubstr("STOP: sent SIGTERM"), Not(HasSubstr("memory was held"))));
  EXPECT_TRUE(track()["last_look"].is_null());
}

TEST_F(LastLookTest, AJobWithoutPythonIsStoppedLikeBeforeAndANoteSaysWhyOnce) {
  const Guarded run = run_guard(
      guard(options({}), guarded_job({"--leak-mb", "1", "--count", "100000", "--step-ms", "20"})));

  EXPECT_EQ(run.exit_code, 1) << run.log;
  EXPECT_THAT(run.log, AllOf(HasSubstr("STOP: sent SIGTERM"), Not(HasSubstr("memory was held"))));
  EXPECT_EQ(count_of(run.log, "no look at what holds the memory of pid"), 1U) << run.log;
  EXPECT_TRUE(track()["last_look"].is_null());
}

TEST_F(LastLookTest, TheRunFileNamesWhoHeldTheMemoryOfAJobThatTheKernelKilled) {
  const LimitedGroup group(640 * kMiB);
  if (!group.usable()) {
    GTEST_SKIP() << "no control group can be made here";
  }
  std::vector<std::string> monitor = {"monitor", "--plain",  "--interval", "100ms",
                                      "-o",      run_file(), "--"};
  const std::vector<std::string> command = group.wrap(leak("0.01", "3000"));
  monitor.insert(monitor.end(), command.begin(), command.end());

  const tests::Output output = run_tool(monitor);

  ASSERT_GT(group.oom_kills(), 0U) << output.err;
  EXPECT_THAT(output.err, AllOf(HasSubstr("last look  "), HasSubstr("__main__.collator.cache")));
  const nlohmann::json last = track()["last_look"];
  ASSERT_TRUE(last.is_object()) << output.err;
  EXPECT_EQ(last["after"], "oom_kill");
  EXPECT_EQ(last["holders"][0]["path"], "__main__.collator.cache");
  EXPECT_THAT(run_tool({"track", run_file()}).out,
              AllOf(HasSubstr("before the kernel's OOM killer came"),
                    HasSubstr("__main__.collator.cache")));
}

}  // namespace
}  // namespace tidemark
