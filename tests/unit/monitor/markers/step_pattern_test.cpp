// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/step_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tidemark::monitor {
namespace {

using testing::HasSubstr;

struct MatchCase {
  const char* pattern;
  std::string line;
  std::optional<std::int64_t> step;
};

class StepPatternDialect : public testing::TestWithParam<MatchCase> {};

TEST_P(StepPatternDialect, FindsTheStep) {
  const auto pattern = StepPattern::compile(GetParam().pattern);

  ASSERT_TRUE(pattern) << pattern.error().what;
  EXPECT_EQ(pattern->match(GetParam().line), GetParam().step)
      << GetParam().pattern << " on " << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(Classes, StepPatternDialect,
                         testing::Values(MatchCase{R"(Step +(\d+))", "INFO Step   12 loss=0.3", 12},
                                         MatchCase{R"(Step +(\d+))", "INFO step 12", std::nullopt},
                                         MatchCase{R"((?i)step +(\d+))", "INFO STEP 12", 12},
                                         MatchCase{R"(step\s(\d+)\s)", "step\t7 ", 7},
                                         MatchCase{R"(\bit\b \D(\d+))", "bit it #3", 3},
                                         MatchCase{R"(\w+=(\d+)\W)", "loss=1 global_step=44;", 1},
                                         MatchCase{R"(step\S(\d+))", "step=9", 9},
                                         MatchCase{R"(\[(\d+)/\d+\])", "[120/500]", 120},
                                         MatchCase{R"(a\tb (\d+))", "a\tb 5", 5}));

INSTANTIATE_TEST_SUITE_P(
    Brackets, StepPatternDialect,
    testing::Values(MatchCase{R"(step[\s:=]+([\d,]+))", "step := 1,234,567 it", 1'234'567},
                    MatchCase{R"([^\d]+(\d+))", "abc77", 77},
                    MatchCase{R"(x[\]\-\^\\](\d))", "x]1", 1},
                    MatchCase{R"(x[\]\-\^\\](\d))", "x-2", 2},
                    MatchCase{R"(x[\]\-\^\\](\d))", "x\\3", 3}, MatchCase{R"(x[]](\d))", "x]4", 4},
                    MatchCase{R"([[:alpha:]]+(\d+))", "ab5", 5}));

INSTANTIATE_TEST_SUITE_P(Groups, StepPatternDialect,
                         testing::Values(MatchCase{R"(epoch \d+ step \d+)", "epoch 3 step 40", 3},
                                         MatchCase{R"((?:epoch \d+ )?step (\d+))",
                                                   "epoch 3 step 40", 40},
                                         MatchCase{R"((?P<step>\d+)/(?P<total>\d+))", "17/500", 17},
                                         MatchCase{R"((?<step>\d+)/\d+)", "17/500", 17},
                                         MatchCase{R"(a(\d+)|b\d+)", "b5", std::nullopt}));

INSTANTIATE_TEST_SUITE_P(Numbers, StepPatternDialect,
                         testing::Values(MatchCase{R"(step (.*))", "step none", std::nullopt},
                                         MatchCase{R"(step ([\d_]+))", "step 10_000", 10'000},
                                         MatchCase{R"(step (.*))", "step 5, 6", 5},
                                         MatchCase{R"((\d+))", "9223372036854775807", INT64_MAX},
                                         MatchCase{R"((\d+))", "9223372036854775808",
                                                   std::nullopt}));

INSTANTIATE_TEST_SUITE_P(Bytes, StepPatternDialect,
                         testing::Values(MatchCase{R"(step (\d+))",
                                                   std::string("\0\xff\x1b[32mstep 8\0", 14), 8},
                                         MatchCase{R"(step (\d+))", "\xe6\xa8\xa1 step 8", 8},
                                         MatchCase{R"(^step (\d+)$)", "step 8", 8}));

struct RefusalCase {
  const char* pattern;
  const char* message;
};

class StepPatternRefusal : public testing::TestWithParam<RefusalCase> {};

TEST_P(StepPatternRefusal, SaysWhatIsWrongAndWhere) {
  const auto pattern = StepPattern::compile(GetParam().pattern);

  ASSERT_FALSE(pattern) << GetParam().pattern;
  EXPECT_EQ(pattern.error().code, Errc::kUsage);
  EXPECT_THAT(pattern.error().what, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Dialect, StepPatternRefusal,
                         testing::Values(RefusalCase{R"(Step.*?(\d+))", "column 6: lazy"},
                                         RefusalCase{R"(\d++)", "column 3: possessive"},
                                         RefusalCase{R"(a{2}?)", "column 4: lazy"},
                                         RefusalCase{R"((?=x)\d)", "column 1: of the (?...) forms"},
                                         RefusalCase{R"((?<!x)\d)", "column 1"},
                                         RefusalCase{R"(x(?i)\d)", "column 2"},
                                         RefusalCase{R"((a)\1)", "column 4: back references"},
                                         RefusalCase{R"(ab\Z)", "column 3: unknown escape \\Z"},
                                         RefusalCase{R"(ab\)", "column 3: a backslash at the end"},
                                         RefusalCase{R"([\D])", "column 2: in brackets"},
                                         RefusalCase{R"(x[abc)", "column 2: [ without ]"},
                                         RefusalCase{R"((\d+)", "Unmatched ( or \\("}));

TEST(StepPattern, RefusesAPatternOfAbsurdLength) {
  EXPECT_FALSE(StepPattern::compile(std::string(1001, 'a')));
}

TEST(StepPattern, SurvivesALongLine) {
  const auto pattern = StepPattern::compile(R"((a|b)*step (\d+))");
  ASSERT_TRUE(pattern);

  EXPECT_EQ(pattern->match(std::string(4000, 'a') + "step 5"), std::nullopt)
      << "group 1 is the letter";
}

}  // namespace
}  // namespace tidemark::monitor
