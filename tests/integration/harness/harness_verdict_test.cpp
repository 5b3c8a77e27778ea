// SPDX-License-Identifier: Apache-2.0
// Short runs of the harness under `tidemark track`, with no option that helps it: what it says, and
// what is true. All presets, with many seeds: ./dev bench harness.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/harness/harness_run.h"
#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tests {
namespace {

using nlohmann::json;

struct Judged {
  json said;
  json truth;

  const json* pattern(const json& of, const std::string& kind) const {
    for (const json& pattern : of.at("patterns")) {
      if (pattern.at("kind") == kind) {
        return &pattern;
      }
    }
    return nullptr;
  }
};

Judged judged(const std::vector<std::string>& scenario) {
  const TempTree folder;
  const std::string truth = folder.path("truth.json");
  std::vector<std::string> words = {"track",  "--json", "--interval",   "200ms", "--pss",
                                    "always", "--",     harness_path(), "train"};
  words.insert(words.end(), scenario.begin(), scenario.end());
  words.insert(words.end(), {"--truth", truth});
  const Output output = run_tool(words);
  std::ifstream file(truth);
  Judged judged{json::parse(output.out, nullptr, false), json::parse(file, nullptr, false)};
  EXPECT_FALSE(judged.said.is_discarded()) << output.err;
  EXPECT_FALSE(judged.truth.is_discarded()) << output.err;
  return judged;
}

TEST(HarnessVerdict, FindsALeakOfSegmentsThatNobodyHolds) {
  const Judged run = judged({"leak", "--cause", "shm"});

  EXPECT_EQ(run.said.at("verdict"), "leak") << run.said.dump(1);
  EXPECT_EQ(run.said.at("where").at("kind"), "shm");
  const json* const found = run.pattern(run.said, "leak");
  ASSERT_NE(found, nullptr);
  const double true_rate = run.pattern(run.truth, "leak")->at("bytes_per_step");
  EXPECT_NEAR(found->at("rate_bytes_per_step").get<double>(), true_rate, 0.1 * true_rate);
}

}  // namespace
}  // namespace tidemark::tests
