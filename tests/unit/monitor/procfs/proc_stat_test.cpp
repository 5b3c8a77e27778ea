// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_stat.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark::monitor {
namespace {

constexpr std::string_view kRest =
    " S 5126 5100 4108 34816 -1 4194304 100 0 0 0 30 12 0 0 20 0 9 0 103644 3133440 390 "
    "18446744073709551615 94356851564544 94356851584425 140723474731328 0 0\n";

TEST(ParseStat, ReadsTheFieldsOfProc5) {
  const auto fields = parse_stat("5140 (cat)" + std::string(kRest));

  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->pid, 5140);
  EXPECT_EQ(fields->comm, "cat");
  EXPECT_EQ(fields->state, 'S');
  EXPECT_EQ(fields->ppid, 5126);
  EXPECT_EQ(fields->process_group, 5100);
  EXPECT_EQ(fields->session, 4108);
  EXPECT_EQ(fields->cpu_ticks, 42U);
  EXPECT_EQ(fields->threads, 9U);
  EXPECT_EQ(fields->start_ticks, 103644U);
  EXPECT_EQ(fields->stack_start, 140723474731328U);
}

TEST(ParseStat, FindsTheEndOfANameThatImitatesTheRestOfTheLine) {
  for (const std::string name : {"a) R 1 2 3 (b", "((", "))", ") ", "x\ny", "", " "}) {
    const auto fields = parse_stat("7 (" + name + ")" + std::string(kRest));

    ASSERT_TRUE(fields) << name;
    EXPECT_EQ(fields->comm, name);
    EXPECT_EQ(fields->ppid, 5126);
  }
}

TEST(ParseStat, RefusesATruncatedOrForeignLine) {
  const std::string whole = "5140 (cat)" + std::string(kRest);
  for (const std::string& text :
       {std::string(), std::string("5140 (cat)"), std::string("5140 cat S 1 2 3"),
        std::string(") ("), whole.substr(0, 60), "x" + whole}) {
    const auto fields = parse_stat(text);

    ASSERT_FALSE(fields) << text;
    EXPECT_EQ(fields.error().code, Errc::kMalformed);
  }
}

}  // namespace
}  // namespace tidemark::monitor
