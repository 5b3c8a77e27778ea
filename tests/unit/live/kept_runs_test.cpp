// SPDX-License-Identifier: Apache-2.0
#include "live/kept_runs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "recording/run_writer.h"
#include "tests/support/in_child.h"
#include "tests/support/temp_tree.h"

namespace tidemark::live {
namespace {

using testing::HasSubstr;

// A variable of the environment, as it was before at the end.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* before = std::getenv(name)) {
      before_ = before;
    }
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
};

class KeptRunsTest : public testing::Test {
 protected:
  KeptRuns open() const {
    auto runs = KeptRuns::open(cache_.path());
    EXPECT_TRUE(runs) << runs.error().what;
    return *std::move(runs);
  }
  std::string path(const std::string& name) const { return cache_.path("tidemark/runs/" + name); }
  // A file as large as that, last written to at this second.
  void put(const std::string& name, int second, std::uint64_t bytes = 10) const {
    cache_.write("tidemark/runs/" + name, "x");
    ASSERT_EQ(::truncate(path(name).c_str(), static_cast<off_t>(bytes)), 0);
    const timespec at{second, 0};
    const timespec times[2] = {at, at};
    ASSERT_EQ(::utimensat(AT_FDCWD, path(name).c_str(), static_cast<const timespec*>(times), 0), 0);
  }
  bool has(const std::string& name) const { return std::filesystem::exists(path(name)); }

  tests::TempTree cache_;
};

TEST_F(KeptRunsTest, AreForTheirUserOnly) {
  cache_.make_directory("tidemark/runs");
  ASSERT_EQ(::chmod(cache_.path("tidemark/runs").c_str(), 0777), 0);

  open();

  struct stat info {};
  ASSERT_EQ(::stat(cache_.path("tidemark/runs").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(KeptRunsTest, FollowNoLinkToAFolderOfSomebodyElse) {
  const tests::TempTree elsewhere;
  cache_.link("tidemark", elsewhere.path());
  EXPECT_FALSE(KeptRuns::open(cache_.path()));

  cache_.remove("tidemark");
  cache_.make_directory("tidemark");
  cache_.link("tidemark/runs", elsewhere.path());
  EXPECT_FALSE(KeptRuns::open(cache_.path()));
}

TEST_F(KeptRunsTest, TrustNoFolderThatEverybodyCanChange) {
  ASSERT_EQ(::chmod(cache_.path().c_str(), 0777), 0);
  const auto runs = KeptRuns::open(cache_.path());
  ASSERT_FALSE(runs);
  EXPECT_THAT(runs.error().what, HasSubstr("can be changed by everybody"));

  ASSERT_EQ(::chmod(cache_.path().c_str(), 01777), 0);
  EXPECT_TRUE(KeptRuns::open(cache_.path())) << "such as /tmp: nobody can replace what is ours";
}

TEST_F(KeptRunsTest, AreInTheCacheOfTheUser) {
  const Variable home("HOME", "/home/her");
  {
    const Variable cache("XDG_CACHE_HOME", "/cache");
    EXPECT_EQ(*KeptRuns::cache_folder(), "/cache");
  }
  for (const auto& value :
       {std::optional<std::string>(), std::optional<std::string>("not/absolute")}) {
    const Variable cache("XDG_CACHE_HOME", value);
    EXPECT_EQ(*KeptRuns::cache_folder(), "/home/her/.cache");
  }
}

TEST_F(KeptRunsTest, NeedNoHome) {
  const Variable cache("XDG_CACHE_HOME", std::nullopt);
  const Variable home("HOME", std::nullopt);

  const auto folder = KeptRuns::cache_folder();

  if (folder) {
    EXPECT_THAT(*folder, testing::MatchesRegex("/.*/\\.cache|//\\.cache"))
        << "of the user database";
  } else {
    EXPECT_THAT(folder.error().what, HasSubstr("neither XDG_CACHE_HOME nor HOME"));
  }
}

TEST_F(KeptRunsTest, TheLastIsTheOneThatWasWrittenToLast) {
  const KeptRuns runs = open();
  EXPECT_THAT(runs.last().error().what, HasSubstr("no run is kept"));
  put("run-b.tidemark", 100);
  put("run-a.tidemark", 200);
  put("run-c.tidemark", 150);
  put("other.txt", 300);
  cache_.link("tidemark/runs/run-d.tidemark", "/etc/passwd");

  EXPECT_EQ(*runs.last(), path("run-a.tidemark"));
}

TEST_F(KeptRunsTest, TheLastIsNotOneThatAnotherScreenStillWrites) {
  const KeptRuns runs = open();
  put("run-closed.tidemark", 100);
  auto writer = recording::RunWriter::create(path("run-open.tidemark"));
  ASSERT_TRUE(writer) << writer.error().what;
  ASSERT_TRUE((*writer)->begin({}));

  // Locks are those of a process: only another one sees them.
  EXPECT_EQ(tests::in_child([&] { return *runs.last(); }), path("run-closed.tidemark"));

  std::filesystem::remove(path("run-closed.tidemark"));
  EXPECT_EQ(tests::in_child([&] { return *runs.last(); }), path("run-open.tidemark"))
      << "better than none";
}

TEST_F(KeptRunsTest, AreBoundedInNumber) {
  const KeptRuns runs = open();
  for (int i = 1; i <= 8; ++i) {
    put("run-" + std::to_string(i) + ".tidemark", i);
    cache_.write("tidemark/runs/run-" + std::to_string(i) + ".tidemark-wal", "");
  }

  runs.trim(path("run-2.tidemark"));

  for (int i = 1; i <= 8; ++i) {
    const std::string name = "run-" + std::to_string(i) + ".tidemark";
    const bool is_kept = i == 2 || i >= 5;
    EXPECT_EQ(has(name), is_kept) << i;
    EXPECT_EQ(has(name + "-wal"), is_kept) << i;
  }
}

TEST_F(KeptRunsTest, AreBoundedInSize) {
  const KeptRuns runs = open();
  put("run-1.tidemark", 1, 10);
  put("run-2.tidemark", 2, 150'000'000);
  put("run-3.tidemark", 3, 90'000'000);
  put("run-own.tidemark", 4, 90'000'000);

  runs.trim(path("run-own.tidemark"));

  EXPECT_TRUE(has("run-own.tidemark"));
  EXPECT_TRUE(has("run-3.tidemark"));
  EXPECT_FALSE(has("run-2.tidemark"));
  EXPECT_TRUE(has("run-1.tidemark")) << "it takes no room";
}

TEST_F(KeptRunsTest, RemoveNothingElse) {
  const KeptRuns runs = open();
  cache_.write("tidemark/runs/notes.txt", "mine");
  cache_.write("tidemark/ftxui/libftxui.a", "of the build");
  for (int i = 1; i <= 8; ++i) {
    put("run-" + std::to_string(i) + ".tidemark", i);
  }

  runs.trim(runs.new_path());

  EXPECT_TRUE(has("notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(cache_.path("tidemark/ftxui/libftxui.a")));
  EXPECT_THAT(runs.new_path(), testing::MatchesRegex(".*/tidemark/runs/run-[0-9-]+\\.tidemark"));
}

}  // namespace
}  // namespace tidemark::live
