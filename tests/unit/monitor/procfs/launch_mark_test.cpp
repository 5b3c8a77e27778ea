// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/launch_mark.h"

#include <fcntl.h>

#include <string>

#include <gtest/gtest.h>

#include "common/fd.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

class LaunchMarkTest : public testing::Test {
 protected:
  bool finds(const std::string& environ) {
    tree.write("10/environ", environ);
    const Fd proc(::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return has_launch_mark(proc.get(), 10, "4711.123456;");
  }
  tests::TempTree tree;
};

TEST_F(LaunchMarkTest, IsFoundInTheEnvironment) {
  EXPECT_TRUE(finds(std::string("A=1\0TIDEMARK_LAUNCH=4711.123456;\0B=2", 36)));
  EXPECT_TRUE(finds(std::string("TIDEMARK_LAUNCH=1.2;4711.123456;9.9;")));  // of nested commands
}

TEST_F(LaunchMarkTest, OfAnotherProcessIsNotOurs) {
  EXPECT_FALSE(finds("TIDEMARK_LAUNCH=4711.123457;"));
  EXPECT_FALSE(finds(""));
}

TEST_F(LaunchMarkTest, IsFoundAcrossTheEndOfWhatIsReadAtOnce) {
  for (std::size_t before = 4070; before < 4110; ++before) {
    EXPECT_TRUE(finds(std::string(before, 'x') + "4711.123456;" + std::string(9000, 'y')))
        << before;
  }
}

TEST_F(LaunchMarkTest, OfAProcessThatIsGoneIsNotFound) {
  const Fd proc(::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));

  EXPECT_FALSE(has_launch_mark(proc.get(), 10, "4711.123456;"));
}

TEST(LaunchValue, EndsWithTheMarkOfThisProcess) {
  EXPECT_TRUE(launch_value().ends_with(launch_mark()));
  EXPECT_NE(launch_mark().find('.'), std::string::npos);
}

}  // namespace
}  // namespace tidemark::monitor
