// SPDX-License-Identifier: Apache-2.0
// `tidemark profile` on the trainer harness, whose leaks are known by line and rate. With the
// default sampling, many seeds: ./dev bench profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/text.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Profiled {
  json report;
  json truth;
  Output again;  // of the report of the recording
};

// Short steps, and samples so dense that chance does not matter.
Profiled profiled(const std::vector<std::string>& scenario, const std::string& step_time = "15ms") {
  const TempTree folder;
  const std::string truth = folder.path("truth.json");
  const std::string file = folder.path("run.tidemark");
  std::vector<std::string> words = {
      "profile", "--json", "--interval", "100ms", "--sample-every",
      "32KiB",   "-o",     file,         "--",    TIDEMARK_BINARY_DIR "/bin/tidemark-harness",
      "train"};
  words.insert(words.end(), scenario.begin(), scenario.end());
  words.insert(words.end(), {"--mb", "100", "--step-time", step_time, "--truth", truth});
  const Output output = run_tool(words);
  std::ifstream stream(truth);
  Profiled run{json::parse(output.out, nullptr, false), json::parse(stream, nullptr, false),
               run_tool({"profile", file, "--plain"})};
  EXPECT_FALSE(run.report.is_discarded()) << output.err;
  EXPECT_FALSE(run.truth.is_discarded()) << output.err;
  return run;
}

const json& leak_of(const json& truth) {
  for (const json& pattern : truth.at("patterns")) {
    if (pattern.at("kind") == "leak") {
      return pattern;
    }
  }
  return truth.at("patterns").at(0);
}

class LeakOfTheHarness : public testing::TestWithParam<const char*> {};

TEST_P(LeakOfTheHarness, IsFoundByItsLineAndItsRate) {
  const Profiled run = profiled({"leak", "--cause", GetParam()});

  const json& line = run.report.at("lines").at(0);
  EXPECT_EQ(line.at("verdict"), "leak") << line.dump(1);
  const std::string found =
      std::string(basename_of(line.at("file").get<std::string>())) + ":" + line.at("line").dump();
  EXPECT_EQ(found, basename_of(run.truth.at("allocating_line").get<std::string>()));
  const double true_rate = leak_of(run.truth).at("bytes_per_step");
  EXPECT_NEAR(line.at("growth_bytes_per_step").get<double>(), true_rate, 0.1 * true_rate)
      << line.dump(1);
  EXPECT_THAT(run.again.out, HasSubstr("LEAK: "));
  EXPECT_THAT(run.again.out, HasSubstr(found));
}

INSTANTIATE_TEST_SUITE_P(Causes, LeakOfTheHarness,
                         testing::Values("native", "collator", "autograd", "optimizer", "pinned"));

// What a newcomer types first; here with shorter steps, and fewer of them.
TEST(HelpOfProfile, BeginsWithAnExampleThatWorks) {
  const std::string help = run_tool({"profile", "--help"}).out;
  const std::string heading = "Examples:\n  ";
  const std::size_t begin = help.find(heading) + heading.size();
  const std::string example = help.substr(begin, help.find('\n', begin) - begin);

  Subprocess shell({"/bin/sh", "-c",
                    "PATH=" TIDEMARK_BINARY_DIR "/bin:$PATH; " + example +
                        " --mb 100 --steps 150 --step-time 15ms"});

  EXPECT_EQ(shell.wait(), 0) << example << '\n' << shell.errors();
  EXPECT_THAT(shell.errors(), HasSubstr("image_decoder.c:12"));
}

TEST(SegmentsOfTheHarness, AreNamedLiveAndInTheRecording) {
  const Profiled run = profiled({"leak", "--cause", "shm"});

  const json& shm = run.report.at("shm");
  ASSERT_FALSE(shm.at("largest").empty()) << shm.dump(1);
  EXPECT_GT(shm.at("growth_bytes").get<double>(), 50.0 * 1024 * 1024);
  EXPECT_THAT(run.again.out, HasSubstr("/dev/shm GROWS by "));
  EXPECT_THAT(run.again.out, HasSubstr(shm.at("largest").at(0).at("path").get<std::string>()));
}

TEST(FragmentationOfTheHarness, IsNamedWithItsRemedy) {
  // Where the memory is gets looked up every few seconds: that must happen after it was freed.
  const Profiled run = profiled({"fragmentation"}, "30ms");

  const json& growth = run.report.at("target").at("processes").at(0).at("growth");
  EXPECT_GT(growth.at("slack_bytes").get<double>(),
            0.7 * growth.at("footprint_bytes").get<double>())
      << growth.dump(1);
  EXPECT_THAT(run.again.out, HasSubstr("the allocator keeps "));
  EXPECT_THAT(run.again.out, HasSubstr("malloc_trim(0)"));
}

}  // namespace
}  // namespace tidemark::tests
