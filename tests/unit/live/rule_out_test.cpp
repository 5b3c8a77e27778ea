// SPDX-License-Identifier: Apache-2.0
#include "live/rule_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::live {
namespace {

using collect::InterventionChoice;

TEST(ParseInterventions, TakesAListOfThem) {
  EXPECT_EQ(*parse_interventions("gc"), (InterventionChoice{false, true, false, false}));
  EXPECT_EQ(*parse_interventions("page-cache,trim"),
            (InterventionChoice{true, false, false, true}));
  EXPECT_EQ(*parse_interventions("trim,gc,cuda,page-cache"), InterventionChoice());
}

TEST(ParseInterventions, NamesWhatThereIs) {
  for (const char* const text : {"", "gc,", "GC", "gc trim", "coffee\x1b"}) {
    const auto parsed = parse_interventions(text);

    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::kUsage);
    EXPECT_THAT(parsed.error().what, testing::HasSubstr("trim, gc, cuda and page-cache"));
    EXPECT_THAT(parsed.error().what, testing::Not(testing::HasSubstr("\x1b")));
  }
}

}  // namespace
}  // namespace tidemark::live
