// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_holders.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

constexpr pid_t kPid = 7;

// One process in a /proc made of ordinary files, and two files that it may hold.
class HolderSearchTest : public testing::Test {
 protected:
  HolderSearchTest() {
    root_.write("shm/a", "x");
    root_.write("shm/b", "x");
    root_.make_directory("proc/7/fd");
    ran("100 20 3");
    maps({});
  }

  struct stat info(const std::string& name) {
    struct stat info {};
    EXPECT_EQ(::stat(root_.path("shm/" + name).c_str(), &info), 0);
    return info;
  }

  void ran(const std::string& schedstat) {
    root_.write("proc/7/task/7/schedstat", schedstat + "\n");
  }

  void maps(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
      const struct stat file = info(name);
      text += fmt::format("7f00-7f10 rw-s 00000000 {:02x}:{:02x} {} /dev/shm/{}\n",
                          major(file.st_dev), minor(file.st_dev), file.st_ino, name);
    }
    root_.write("proc/7/maps", text);
  }

  // The names of those of `wanted` that the process was found to hold.
  std::string held_of(const std::vector<std::string>& wanted) {
    WantedFiles files(info("a").st_dev);
    for (const std::string& name : wanted) {
      files.add(info(name).st_ino, name);
    }
    EXPECT_EQ(search_.mark_held_files(kPid, files), Searched::kYes);
    std::string held;
    for (const std::string& name : wanted) {
      held += files.holder_of(info(name).st_ino) == Holder::kNone ? "" : name;
    }
    EXPECT_EQ(files.are_all_held(), held.size() == wanted.size());
    return held;
  }

  tests::TempTree root_;
  HolderSearch search_{root_.path("proc")};
};

TEST_F(HolderSearchTest, BelievesThatAProcessThatHasNotRunHoldsTheSame) {
  maps({"a"});
  EXPECT_EQ(held_of({"a", "b"}), "a");

  maps({"b"});  // the kernel would not do that: it shows who is asked
  EXPECT_EQ(held_of({"a", "b"}), "a");

  ran("101 20 4");
  EXPECT_EQ(held_of({"a", "b"}), "b");
}

TEST_F(HolderSearchTest, SearchesAgainWhereAnyOfTheThreadsHasRun) {
  root_.write("proc/7/task/8/schedstat", "5 0 1\n");
  EXPECT_EQ(held_of({"a"}), "");

  maps({"a"});
  root_.write("proc/7/task/8/schedstat", "6 0 2\n");
  EXPECT_EQ(held_of({"a"}), "a");
}

TEST_F(HolderSearchTest, SearchesAlwaysWhereTheKernelDoesNotCountHowLongThreadsRun) {
  ran("0 0 0");
  EXPECT_EQ(held_of({"a"}), "");
  maps({"a"});
  EXPECT_EQ(held_of({"a"}), "a");

  root_.remove("proc/7/task/7/schedstat");
  maps({});
  EXPECT_EQ(held_of({"a"}), "");
}

// A file that was made while the search before was under way.
TEST_F(HolderSearchTest, KnowsAlsoWhatWasNotAskedForTheFirstTime) {
  maps({"a"});
  root_.link("proc/7/fd/3", root_.path("shm/b"));
  EXPECT_EQ(held_of({}), "");

  EXPECT_EQ(held_of({"a"}), "a");
  EXPECT_EQ(held_of({"b"}), "b");
}

TEST_F(HolderSearchTest, ForgetsProcessesThatHaveExited) {
  maps({"a"});
  EXPECT_EQ(held_of({"a"}), "a");
  search_.keep_only({kPid});
  maps({});
  EXPECT_EQ(held_of({"a"}), "a");

  search_.keep_only({kPid + 1});

  EXPECT_EQ(held_of({"a"}), "");
}

TEST_F(HolderSearchTest, RemembersNothingOfAProcessThatRefuses) {
  root_.remove("proc/7/maps");
  root_.link("proc/7/maps", "maps");  // open() fails with ELOOP
  WantedFiles files(info("a").st_dev);
  files.add(info("a").st_ino, "a");
  EXPECT_EQ(search_.mark_held_files(kPid, files), Searched::kRefused);
  EXPECT_EQ(search_.mark_held_files(kPid, files), Searched::kRefused);
}

}  // namespace
}  // namespace tidemark::monitor
