// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/scenarios.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::demo {
namespace {

using testing::ElementsAre;

TEST(DemoScenarios, TakeLessThanThreeMinutesEvenOneByOneUnlessMoreAreAskedFor) {
  std::vector<DemoScenario> usual;
  for (const DemoScenario& scenario : demo_scenarios()) {
    if (scenario.is_usual) {
      usual.push_back(scenario);
    }
  }

  EXPECT_EQ(usual.size(), 7U);
  EXPECT_LT(expected_seconds(usual, 1), 180.0);
}

TEST(DemoScenarios, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const DemoScenario& scenario : demo_scenarios()) {
    names.insert(scenario.name);
    EXPECT_EQ(find_demo_scenario(scenario.name), &scenario);
  }
  EXPECT_EQ(names.size(), demo_scenarios().size());
  EXPECT_EQ(find_demo_scenario("no-such"), nullptr);
}

TEST(DemoScenarios, BecomeACommandOfTheHarness) {
  const DemoScenario scenario{"x", "X", "does x", "leak --cause shm", 250};

  EXPECT_THAT(
      demo_command(scenario, "/bin/harness", "/tmp/a b/x.truth.json", 3),
      ElementsAre("/bin/harness", "train", "leak", "--cause", "shm", "--steps", "250",
                  "--step-time", "50ms", "--seed", "3", "--truth", "/tmp/a b/x.truth.json"));
}

TEST(DemoScenarios, TakeTheTimeOfTheSlowerRowWhenTwoRunAtATime) {
  const DemoScenario shorter{"a", "a", "", "steady", 100};
  const DemoScenario longer{"b", "b", "", "steady", 400};
  const double one = expected_seconds(shorter);
  const double other = expected_seconds(longer);
  const std::vector<DemoScenario> three{longer, shorter, shorter};

  EXPECT_DOUBLE_EQ(expected_seconds(three, 1), other + one + one);
  EXPECT_DOUBLE_EQ(expected_seconds(three, 2), std::max(other, one + one));
}

}  // namespace
}  // namespace tidemark::demo
