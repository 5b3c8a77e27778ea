// SPDX-License-Identifier: Apache-2.0
// The lines of Python that leak, in every version of it that is on this machine.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/text.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/integration/profile/python_matrix.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::Output;
using tests::Python;
using tests::run_tool;
using tests::TempTree;

Output profile(const std::vector<std::string>& options, const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"profile",    "--json", "--top",    "20",
                                        "--interval", "50ms",   "--warmup", "5steps"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), command.begin(), command.end());
  return run_tool(arguments);
}

// A machine that stands still for a while leaves too few samples to tell what grows: then once
// more.
json profile_growth(const std::vector<std::string>& options,
                    const std::vector<std::string>& command, std::size_t growing_lines = 1) {
  constexpr int kMostRuns = 5;
  json report;
  for (int run = 0; run < kMostRuns; ++run) {
    const Output output = profile(options, command);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    report = json::parse(output.out);
    const json& lines = report.at("lines");
    const auto growing = std::count_if(lines.begin(), lines.end(), [](const json& line) {
      return line.at("growth_bytes") > 0 && line.at("growth_bytes_per_step").is_number();
    });
    if (static_cast<std::size_t>(growing) >= growing_lines) {
      break;
    }
  }
  return report;
}

json launch_exactly(const std::vector<std::string>& command, std::size_t growing_lines) {
  return profile_growth({"--mode", "exact"}, command, growing_lines);
}

class PythonVersion : public testing::TestWithParam<int> {
 protected:
  // Calls check(python) for each interpreter of the version.
  template <typename Check>
  void for_each_python(Check check) {
    std::vector<Python> found = tests::pythons();
    std::erase_if(found, [](const Python& python) { return python.minor != GetParam(); });
    if (found.empty()) {
      GTEST_SKIP() << "no Python 3." << GetParam() << " on this machine";
    }
    std::for_each(found.begin(), found.end(), check);
  }
};
INSTANTIATE_TEST_SUITE_P(Each, PythonVersion, testing::Range(9, 15), [](const auto& version) {
  return "Python3_" + std::to_string(version.param);
});

TEST_P(PythonVersion, HasItsLeakingLinesFirst) {
  for_each_python(
      [](const Python& python) { tests::expect_leaking_lines(python.path, launch_exactly); });
}

// An arena is needed by whichever line comes next: by the one that leaks, most often.
TEST_P(PythonVersion, HasArenasOrSmallObjects) {
  for_each_python([](const Python& python) {
    const std::vector<std::string> command = {python.path, tests::script_path("small_objects.py"),
                                              "30"};
    const json arenas = profile_growth({"--mode", "exact"}, command);
    const json objects = profile_growth({"--mode", "exact", "--python-objects"}, command);

    const json& arena = arenas.at("lines").at(0);
    EXPECT_EQ(arena.at("python_arena"), true) << python.path << arena.dump(1);
    EXPECT_EQ(arena.at("kind"), "anonymous_map");
    EXPECT_EQ(arena.at("line"), tests::leaking_line("small_objects.py"));
    const json& object = objects.at("lines").at(0);
    EXPECT_EQ(object.at("python_arena"), false) << python.path << object.dump(1);
    EXPECT_EQ(object.at("line"), tests::leaking_line("small_objects.py"));
    EXPECT_GT(object.at("live_blocks"), 100'000);
  });
}

// A training loop with real libraries.
json profile_training(const std::string& workers) {
  return profile_growth({"--sample-every", "64KiB"},
                        {"/usr/bin/python3", tests::script_path("torch_loader.py"), workers});
}

TEST(PythonTraining, HasTheCollatorThatKeepsBatchesFirst) {
  if (!tests::has_torch()) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch";
  }

  tests::expect_collator_first(profile_training("0"), 0);
}

TEST(PythonTraining, HasTheCollatorThatKeepsBatchesInWorkersFirst) {
  if (!tests::has_torch()) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch";
  }

  tests::expect_collator_first(profile_training("2"), 2);
}

}  // namespace
}  // namespace tidemark
