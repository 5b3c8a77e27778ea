// SPDX-License-Identifier: Apache-2.0
#include "live/job_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace tidemark::live {
namespace {

constexpr std::int64_t kNowS = 1'800'000'000;
constexpr std::int64_t kDayS = 24 * 3600;

class CommandOutputs : public testing::Test {
 protected:
  void output(const std::string& name, std::int64_t age_s) {
    folder_.write(name, "step 1\n");
    const timespec at{kNowS - age_s, 0};
    const timespec times[] = {at, at};
    EXPECT_EQ(::utimensat(AT_FDCWD, folder_.path(name).c_str(), times, 0), 0);
  }
  bool has(const std::string& name) { return std::filesystem::exists(folder_.path(name)); }

  tests::TempTree folder_;
};

TEST_F(CommandOutputs, OfOldRunsAreRemovedButForTheLastFive) {
  for (int i = 1; i <= 8; ++i) {
    output(fmt::format("tidemark-output-{}.log", i), i * 2 * kDayS);
  }

  tidy_command_outputs(folder_.path(), kNowS);

  for (int i = 1; i <= 8; ++i) {
    EXPECT_EQ(has(fmt::format("tidemark-output-{}.log", i)), i <= 5) << i;
  }
}

TEST_F(CommandOutputs, OfADayAreAllKept) {
  for (int i = 1; i <= 8; ++i) {
    output(fmt::format("tidemark-output-{}.log", i), i * 60);
  }

  tidy_command_outputs(folder_.path(), kNowS);

  for (int i = 1; i <= 8; ++i) {
    EXPECT_TRUE(has(fmt::format("tidemark-output-{}.log", i))) << i;
  }
}

TEST_F(CommandOutputs, AreAllThatIsRemoved) {
  for (int i = 1; i <= 6; ++i) {
    output(fmt::format("tidemark-output-{}.log", i), kDayS * 10 * i);
  }
  output("tidemark-output-7.txt", kDayS * 100);
  output("mine.log", kDayS * 100);
  folder_.make_directory("tidemark-output-8.log");
  folder_.link("tidemark-output-9.log", folder_.path("mine.log"));

  tidy_command_outputs(folder_.path(), kNowS);

  EXPECT_FALSE(has("tidemark-output-6.log"));
  for (const char* const name : {"tidemark-output-5.log", "tidemark-output-7.txt", "mine.log",
                                 "tidemark-output-8.log", "tidemark-output-9.log"}) {
    EXPECT_TRUE(has(name)) << name;
  }
}

}  // namespace
}  // namespace tidemark::live
