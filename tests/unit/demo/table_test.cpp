// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/table.h"

#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/text.h"
#include "tests/support/golden.h"

namespace tidemark::demo {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::difference_from_golden;
using tracker::Verdict;

DemoGrade grade(std::string scenario, Verdict truth, Verdict verdict) {
  DemoGrade result;
  result.scenario = std::move(scenario);
  result.truth = truth;
  result.verdict = verdict;
  return result;
}

DemoGrade leak(std::string scenario, double measured, std::string line,
               std::optional<std::string> found) {
  DemoGrade result = grade(std::move(scenario), Verdict::kLeak, Verdict::kLeak);
  result.true_bytes_per_step = 524288;
  result.measured_bytes_per_step = measured;
  result.true_line = std::move(line);
  result.found_line = std::move(found);
  return result;
}

std::vector<DemoGrade> some_grades() {
  std::vector<DemoGrade> grades{
      grade("warm-up", Verdict::kWarmup, Verdict::kWarmup),
      leak("leak: collator", 525000, "trainer_harness/collator.cpp:42", "/src/collator.cpp:42"),
      leak("leak: native", 640000, "a/b/three_calls_deep_inside.cpp:123", std::nullopt),
      grade("staircase", Verdict::kLeak, Verdict::kGrowing),
      leak("leak: autograd", 525000, "trainer_harness/model.cpp:7", "")};
  grades[2].problem = "the rate is off by +22 %";
  grades[3].problem =
      "CANNOT TELL YET: footprint of trainer, pid 1240 grows by 1.00 MiB/step since step 40. To "
      "decide it takes about 40 more steps.";
  grades[4].problem = "no stack was found that grows";
  grades.push_back(failed_demo("wrapper trap", "the job failed: no such device"));
  return grades;
}

TEST(DemoTable, LooksAsInTheGoldenFile) {
  EXPECT_EQ(difference_from_golden("demo/table.txt", demo_table(some_grades(), Colour::kNone)), "");
}

TEST(DemoJson, HasTruthAndFindingSideBySideAndNullForTheUnknown) {
  const std::vector<DemoScenario> scenarios{{"leak-collator", "leak: collator", "", "leak", 400},
                                            {"wrapper", "wrapper trap", "", "leak", 400}};
  std::vector<DemoGrade> grades{
      leak("leak: collator", 525000, "trainer_harness/collator.cpp:42", "/src/collator.cpp:42"),
      failed_demo("wrapper trap", "the job failed")};
  grades[0].advice = {"kept_per_step"};

  EXPECT_EQ(
      demo_json(scenarios, grades, 3),
      R"({"schema":1,"seed":3,"scenarios":[{"name":"leak-collator","ran":true,"right":true,)"
      R"("problem":null,"truth":{"verdict":"leak","bytes_per_step":524288,"plateau_step":null,)"
      R"("growth_bytes":null,"line":"trainer_harness/collator.cpp:42"},"found":{"verdict":"leak",)"
      R"("bytes_per_step":525000,"plateau_step":null,"growth_bytes":null,)"
      R"("line":"/src/collator.cpp:42"},"advice":["kept_per_step"]},)"
      R"({"name":"wrapper","ran":false,"right":false,)"
      R"("problem":"the job failed","truth":{"verdict":null,"bytes_per_step":null,)"
      R"("plateau_step":null,"growth_bytes":null,"line":null},"found":{"verdict":null,)"
      R"("bytes_per_step":null,"plateau_step":null,"growth_bytes":null,"line":null},"advice":[]}]})"
      "\n");
}

TEST(DemoTable, FitsIntoAHundredColumnsAndEscapesWhatItShows) {
  std::vector<DemoGrade> grades = some_grades();
  grades[1].true_line = std::string(300, 'x') + ".cpp:1";
  grades[1].found_line = std::string(300, 'y') + ".cpp:1";
  grades[2].true_line = "evil\x1b[2J.cpp:1";

  const std::string text = demo_table(grades, Colour::kNone);

  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("...xxxxxxx.cpp:1 / ...yyyyyyy.cpp:1"));
  std::string_view rest = text;
  while (const auto line = next_line(rest)) {
    EXPECT_LE(line->size(), kDemoColumns) << *line;
  }
}

TEST(DemoTable, ColoursTheMarksForATerminalOnly) {
  const DemoGrade right = grade("warm-up", Verdict::kWarmup, Verdict::kWarmup);

  EXPECT_EQ(demo_mark(right, Colour::kNone), "right");
  EXPECT_EQ(demo_mark(right, Colour::kAnsi), "\x1b[32mright\x1b[0m");
  EXPECT_EQ(demo_mark(failed_demo("x", "y"), Colour::kAnsi), "\x1b[1;31mFAILED\x1b[0m");
}

}  // namespace
}  // namespace tidemark::demo
