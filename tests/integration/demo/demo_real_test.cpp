// SPDX-License-Identifier: Apache-2.0
// `tidemark demo` as a user runs it, on the real trainer. Two scenarios, side by side: one without
// a leak, and one whose line has to be found.
#include <sys/stat.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/monitor/command_output.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(RealDemo, IsRightAboutAWarmupAndALeak) {
  const tests::Output output = tests::run_tool({"demo", "warmup", "leak-collator"});

  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, ContainsRegex("warm-up +warmup +warmup +- +- +right\n"));
  EXPECT_THAT(output.out, ContainsRegex("leak: collator +leak +leak +512 KiB / [45][0-9][0-9] KiB +"
                                        "collator.cpp:[0-9]+ / same +right\n"));
  EXPECT_THAT(output.out, HasSubstr("2 of 2 right"));
}

TEST(RealDemo, ShowsWhyAJobFailed) {
  const tests::TempTree folder;
  const std::string path = folder.path("harness");
  folder.write("harness", "#!/bin/sh\nexec " TIDEMARK_BINARY_DIR
                          "/bin/tidemark-harness \"$@\" --resume /nonexistent/model.pt\n");
  ::chmod(path.c_str(), 0700);

  const tests::Output output = tests::run_tool({"demo", "--harness", path, "warmup"});

  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.out, HasSubstr("tidemark-harness: error: cannot read the checkpoint "
                                    "/nonexistent/model.pt"));
}

}  // namespace
}  // namespace tidemark
