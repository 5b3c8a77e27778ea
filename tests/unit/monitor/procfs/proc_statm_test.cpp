// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_statm.h"

#include <gtest/gtest.h>

namespace tidemark::monitor {
namespace {

TEST(ParseStatm, ReadsTheFirstThreeFields) {
  const auto fields = parse_statm("1389 390 311 5 0 115 0\n");

  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields, (StatmFields{1389, 390, 311}));
}

TEST(ParseStatm, AZombieHasNothing) {
  const auto fields = parse_statm("0 0 0 0 0 0 0\n");

  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields, StatmFields());
}

TEST(ParseStatm, RefusesATruncatedOrForeignLine) {
  for (const std::string_view text :
       {"", "1389 390", "1389 -1 311", "1389 390 x", "99999999999999999999999 1 1"}) {
    const auto fields = parse_statm(text);

    ASSERT_FALSE(fields) << text;
    EXPECT_EQ(fields.error().code, Errc::kMalformed);
  }
}

}  // namespace
}  // namespace tidemark::monitor
