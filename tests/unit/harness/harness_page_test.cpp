// SPDX-License-Identifier: Apache-2.0
// docs/harness.md: it has every flag, every scenario and every field of the truth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/io.h"
#include "common/text.h"
#include "trainer_harness/command_line.h"
#include "trainer_harness/plan.h"
#include "trainer_harness/truth.h"

namespace tidemark::harness {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string page() {
  auto text = read_file(TIDEMARK_SOURCE_DIR "/docs/harness.md");
  EXPECT_TRUE(text);
  return text ? *text : "";
}

TEST(HarnessPage, HasEveryFlag) {
  const std::string text = page();
  const auto command =
      parse_command_line(std::vector<std::string>{"train", "--help"}, std::nullopt);
  ASSERT_TRUE(command);
  int flags = 0;
  for (std::string_view line : split(std::get<std::string>(*command), '\n')) {
    if (line.starts_with("  --")) {
      line.remove_prefix(2);
      EXPECT_THAT(text, HasSubstr("`" + std::string(line.substr(0, line.find(' ')))));
      ++flags;
    }
  }
  EXPECT_GT(flags, 20);
}

TEST(HarnessPage, HasEveryScenarioCauseAndReplay) {
  const std::string text = page();
  for (int i = 0; i <= static_cast<int>(Scenario::kReplay); ++i) {
    EXPECT_THAT(text, HasSubstr("| `" + std::string(name_of(static_cast<Scenario>(i))) + "` |"));
  }
  for (int i = 0; i <= static_cast<int>(Cause::kPinned); ++i) {
    EXPECT_THAT(text, HasSubstr("| `" + std::string(name_of(static_cast<Cause>(i))) + "` |"));
  }
  for (int i = 0; i <= static_cast<int>(Replay::kCatastrophic); ++i) {
    EXPECT_THAT(text, HasSubstr("| `" + std::string(name_of(static_cast<Replay>(i))) + "` |"));
  }
}

void expect_fields(const json& value, const std::string& text) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      EXPECT_THAT(text, HasSubstr("`" + key + "`"));
      expect_fields(inner, text);
    }
  } else if (value.is_array()) {
    for (const json& inner : value) {
      expect_fields(inner, text);
    }
  }
}

TEST(HarnessPage, HasEveryFieldOfTheTruth) {
  TrainerOptions options;
  options.scenarios = {Scenario::kWarmup, Scenario::kSpikes, Scenario::kLeak, Scenario::kReplay,
                       Scenario::kCompileWorkers};
  RunFacts facts;
  facts.processes = {{1, "trainer"}};

  const json truth = json::parse(truth_json(options, plan_run(options), facts));

  ASSERT_GE(truth.at("patterns").size(), 3U);
  expect_fields(truth, page());
}

}  // namespace
}  // namespace tidemark::harness
