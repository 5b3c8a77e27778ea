// SPDX-License-Identifier: Apache-2.0
#include "monitor/markers/step_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

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
  const StepSearch search = pattern->search(GetParam().line);
  EXPECT_EQ(search.step, GetParam().step) << GetParam().pattern << " on " << GetParam().line;
  EXPECT_FALSE(search.gave_up);
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

INSTANTIATE_TEST_SUITE_P(
    Perl, StepPatternDialect,
    testing::Values(
        MatchCase{R"(Step.*?(\d+))", "Step at 12 of 34", 12}, MatchCase{R"(a{2}?(\d))", "aa5", 5},
        MatchCase{R"((\d++) it)", "31 it", 31}, MatchCase{R"((?<=step=)\d+)", "lr=3 step=9", 9},
        MatchCase{R"((?<!total_)step (\d+))", "total_step 5 step 6", 6},
        MatchCase{R"((\d+)(?=/500))", "3/10 17/500", 17}, MatchCase{R"((\d+)==\1)", "3==4 5==5", 5},
        MatchCase{R"(x(?i)STEP (\d+)\Z)", "xstep 4", 4}, MatchCase{R"([\D]+(\d+))", "abc5", 5},
        MatchCase{R"(step \K\d+)", "4 step 5", 5},
        MatchCase{R"((?x) step \s (\d+) # the step)", "step 8", 8}));

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

INSTANTIATE_TEST_SUITE_P(
    Dialect, StepPatternRefusal,
    testing::Values(RefusalCase{R"(ab\)", "\\ at end of pattern"},
                    RefusalCase{R"(x[abc)", "column 6: missing terminating ] for character class"},
                    RefusalCase{R"((\d+)", "column 5: missing closing parenthesis"},
                    RefusalCase{R"(*a)", ": quantifier does not follow"},
                    RefusalCase{R"((?<!x+)\d)", "column"}, RefusalCase{R"((*UTF)\d)", "column"}));

TEST(StepPattern, RefusesAPatternOfAbsurdLength) {
  EXPECT_FALSE(StepPattern::compile(std::string(1001, 'a')));
}

TEST(StepPattern, RefusesAPatternThatWouldNeedMuchMemory) {
  EXPECT_FALSE(StepPattern::compile("((((a{1,999}){1,999}){1,999}){1,999})"));
}

TEST(StepPattern, SearchesALineOfManyBytes) {
  const auto pattern = StepPattern::compile(R"((?:a|b)*step (\d+))");
  ASSERT_TRUE(pattern);

  const StepSearch search = pattern->search(std::string(4000, 'a') + "step 5");

  EXPECT_EQ(search.step, 5);
  EXPECT_FALSE(search.gave_up);
}

class StepPatternBound : public testing::TestWithParam<const char*> {};

TEST_P(StepPatternBound, GivesUpALineThatWouldTakeTooLong) {
  const auto pattern = StepPattern::compile(GetParam());
  ASSERT_TRUE(pattern) << pattern.error().what;

  const StepSearch search = pattern->search(std::string(4096, 'a'));

  EXPECT_EQ(search.step, std::nullopt);
  EXPECT_TRUE(search.gave_up);
  EXPECT_EQ(pattern->search("aa step").gave_up, false) << "the next line is searched again";
}

INSTANTIATE_TEST_SUITE_P(
    Hostile, StepPatternBound,
    testing::Values(R"((a+)+\d)", R"((a|aa)+\d)", R"((?:a|a?)+\d)", R"(a.*a.*a.*\d)",
                    // Little at each byte of the line, so that PCRE2's own limits let it pass.
                    R"((?:a|b){1,900}\d)",
                    // Deep, and with much to remember.
                    R"(((a)(?1)?)+\d)", R"((a(?R)?)+\d)"));

TEST(StepPattern, TakesLittleMemoryWhateverThePatternIs) {
  constexpr long kMostKib = 64 << 10;
  const auto peak_kib = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  std::string deep(240, '(');
  deep += 'a';
  for (int i = 0; i < 240; ++i) {
    deep += ")+";
  }
  const long before_kib = peak_kib();
  for (const std::string& hostile :
       {deep, std::string("((((a{1,999}){1,999}){1,999}){1,999})"), std::string("(a{1,999}){1,60}"),
        std::string("((((((a*)*)*)*)*)*)*b"), std::string("(?:(a)|b){1,30000}"),
        std::string("(((a?){99}){99})+b")}) {
    if (const auto pattern = StepPattern::compile(hostile)) {
      (void)pattern->search(std::string(4096, 'a') + "b");
    }
  }

  EXPECT_LT(peak_kib() - before_kib, kMostKib);
}

}  // namespace
}  // namespace tidemark::monitor
