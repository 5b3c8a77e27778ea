// SPDX-License-Identifier: Apache-2.0
// `tidemark check` with files of a repository: tidemark.json, baselines, histories; and with the
// tracer.
#include <unistd.h>

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/check/checked_victim.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using tests::budget;
using tests::check_of;
using tests::checked;
using tests::Output;
using tests::run_check;
using tests::run_tool;
using tests::TempTree;
using tests::victim_path;

// Holds so many megabytes for two seconds.
std::vector<std::string> holding(const std::string& megabytes) {
  return {victim_path("leak_linear"),
          "--base-mb",
          megabytes,
          "--leak-mb",
          "0",
          "--count",
          "100",
          "--steps"};
}

TEST(CheckBaseline, IsMadeComparedWithAndExceeded) {
  const TempTree folder;
  const std::string file = folder.path("base.json");
  const auto with = [&](std::vector<std::string> more, const std::string& megabytes) {
    more.insert(more.end(), {"--baseline", file, "--warmup", "5steps"});
    return checked(more, holding(megabytes));
  };

  EXPECT_EQ(with({"--update-baseline"}, "64").at("exit_code"), 0);
  EXPECT_EQ(with({"--update-baseline"}, "64").at("exit_code"), 0);
  const json same = with({}, "64");
  const json larger = with({}, "90");

  EXPECT_EQ(same.at("exit_code"), 0) << same.dump(1);
  EXPECT_EQ(check_of(same).at("baseline_runs"), 2);
  EXPECT_EQ(larger.at("exit_code"), 1);
  EXPECT_EQ(budget(larger, "baseline_plateau").at("state"), "exceeded");
  EXPECT_EQ(budget(larger, "baseline_peak").at("state"), "exceeded");
  EXPECT_EQ(check_of(with({"--tolerance", "60%"}, "90")).at("result"), "pass");
}

TEST(CheckBaseline, OfAnotherClassOfMachineWarns) {
  const TempTree folder;
  folder.write("base.json", R"({"schema": 1, "checks": {"sleep": [{"machine": {"arch": "vax",
    "cpus": 1, "memory_bytes": 1048576, "page_bytes": 512, "huge_pages": "", "libc": ""},
    "runs": [{"plateau_bytes": 1000000000, "peak_bytes": 1000000000}]}]}})");

  const Output output = run_check({"--baseline", folder.path("base.json")}, {"sleep", "1.5"});

  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr("another class of machine: processor"));
}

TEST(CheckBaseline, ThatIsMissingOrCorruptStopsTheCheckBeforeItBegins) {
  const TempTree folder;
  folder.write("corrupt.json", "{\"schema\": 1, \"checks\": {\"sh\": [{}]}}");
  const auto with = [&](const std::string& name) {
    return run_check({"--baseline", folder.path(name)}, {"sh", "-c", ": > " + folder.path("ran")});
  };

  const Output missing = with("none.json");
  const Output corrupt = with("corrupt.json");

  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("--update-baseline makes it"));
  EXPECT_EQ(corrupt.exit_code, 3);
  EXPECT_THAT(corrupt.err, HasSubstr("corrupt.json: checks.sh[0]"));
  EXPECT_NE(::access(folder.path("ran").c_str(), F_OK), 0);
}

TEST(CheckHistory, GetsARowPerRunAndTellsSinceWhenItIsMore) {
  const TempTree folder;
  const std::string file = folder.path("h.csv");
  const Output first = run_check({"--history", file, "--commit", "c0"}, holding("64"));
  // Six earlier ones like it, as if other commits had been checked.
  const std::string text = tests::content_of(file);
  const std::string row = text.substr(text.find('\n') + 1);
  std::string earlier = text.substr(0, text.find('\n') + 1);
  for (int i = 1; i <= 6; ++i) {
    std::string copy = row;
    earlier += copy.replace(copy.find("c0"), 2, fmt::format("c{}", i));
  }
  folder.write("h.csv", earlier);

  run_check({"--history", file, "--commit", "c7"}, holding("90"));
  const Output last = run_check({"--history", file, "--commit", "c8"}, holding("90"));

  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(last.err, HasSubstr("plateau rose from"));
  EXPECT_THAT(last.err, HasSubstr("with c7 ("));
}

std::string config(const std::string& checks, const std::string& rest = "") {
  return fmt::format("{{\"schema\": 1, \"checks\": [{}]{}}}", checks, rest);
}

TEST(CheckConfigFile, RunsAllItsChecksOrThoseThatAreNamed) {
  const TempTree folder;
  folder.write("tidemark.json",
               config(R"({"name": "good", "command": ["sleep", "1.5"], "max_peak": "1GiB"},
                         {"name": "bad", "command": ["sleep", "1.5"], "max_peak": "1KiB"})"));
  const std::string file = folder.path("tidemark.json");

  const Output all = run_tool({"check", "--config", file});
  const Output one = run_tool({"check", "good", "--config", file});
  const Output over = run_tool({"check", "--config", file, "--max-peak", "2GiB"});
  const Output none = run_tool({"check", "ugly", "--config", file});

  EXPECT_EQ(all.exit_code, 1) << all.err;
  EXPECT_THAT(all.err, HasSubstr("checks: 1 passed, 1 failed (bad)\n"));
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(over.exit_code, 0) << over.err;
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("has no check 'ugly', only good, bad"));
}

TEST(CheckConfigFile, RecordsEachOfItsChecksInAFileOfItsOwn) {
  const TempTree folder;
  folder.write("c.json", R"({"schema": 1, "defaults": {"max_peak": "1GiB"}, "checks": [
    {"name": "a", "command": ["sleep", "0.3"]}, {"name": "b/c", "command": ["sleep", "0.3"]}]})");

  run_tool({"check", "--config", folder.path("c.json"), "-o", folder.path("r.tidemark")});
  run_tool({"check", "a", "--config", folder.path("c.json"), "-o", folder.path("one.tidemark")});

  EXPECT_EQ(::access(folder.path("r-a.tidemark").c_str(), R_OK), 0);
  EXPECT_EQ(::access(folder.path("r-b_c.tidemark").c_str(), R_OK), 0);
  EXPECT_NE(::access(folder.path("r.tidemark").c_str(), R_OK), 0);
  EXPECT_EQ(::access(folder.path("one.tidemark").c_str(), R_OK), 0);
}

TEST(CheckConfigFile, ThatIsWrongIsAnErrorOfUseThatNamesTheKey) {
  const TempTree folder;
  folder.write("tidemark.json", config(R"({"name": "x", "command": ["true"], "max_peek": "1"})"));

  const Output output = run_tool({"check", "--config", folder.path("tidemark.json")});

  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("tidemark.json: checks[0] (x).max_peek"));
}

// Leaks in leak_here(), 256 KiB a step; its own exit status is 7.
std::string leak_by_line() { return fmt::format("{} --count 120; :", victim_path("leak_by_line")); }

bool has_tracer() { return ::access(TIDEMARK_BINARY_DIR "/lib/libtidemark_tracer.so", R_OK) == 0; }

TEST(CheckProfile, NamesTheLinesThatHoldTheGrowth) {
  if (!has_tracer()) {
    GTEST_SKIP() << "the tracer was not built";
  }
  const Output output =
      run_check({"--profile", "--max-growth", "50KiB/step", "--warmup", "20steps"},
                {"sh", "-c", leak_by_line()});

  EXPECT_EQ(output.exit_code, 1) << output.err;
  EXPECT_THAT(output.err, HasSubstr("leak_by_line.cpp:"));
  EXPECT_THAT(output.err, HasSubstr("leak_here"));
}

TEST(CheckProfile, PutsUpWithWhatIsSuppressedUntilItExpires) {
  if (!has_tracer()) {
    GTEST_SKIP() << "the tracer was not built";
  }
  const TempTree folder;
  const auto with = [&](const std::string& expires) {
    folder.write("tidemark.json",
                 config(fmt::format(R"({{"name": "x", "command": ["sh", "-c", "{}"],
                          "profile": true, "max_growth": "50KiB/step", "warmup": "20steps",
                          "interval": "50ms"}})",
                                    leak_by_line()),
                        fmt::format(R"(, "suppressions": [{{"site": "leak_here*",
                          "reason": "known", "expires": "{}"}}])",
                                    expires)));
    return run_tool({"check", "--config", folder.path("tidemark.json")});
  };

  const Output known = with("2999-12-31");
  const Output expired = with("2020-01-01");

  EXPECT_EQ(known.exit_code, 0) << known.err;
  EXPECT_THAT(known.err, HasSubstr("1 only because of a suppression"));
  EXPECT_THAT(known.err, HasSubstr("leak_here*: known (until 2999-12-31)"));
  EXPECT_EQ(expired.exit_code, 1) << expired.err;
  EXPECT_THAT(expired.err, HasSubstr("this suppression has expired"));
}

}  // namespace
}  // namespace tidemark
