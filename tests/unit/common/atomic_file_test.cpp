// SPDX-License-Identifier: Apache-2.0
#include "common/atomic_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "tests/support/in_child.h"
#include "tests/support/temp_tree.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using tests::TempTree;

// No write succeeds while this lives.
class FullDisk {
 public:
  FullDisk() : real_(replace_syscalls({})) {
    Syscalls full = real_;
    full.write = [](int, const void*, std::size_t) -> ssize_t {
      errno = ENOSPC;
      return -1;
    };
    replace_syscalls(full);
  }
  ~FullDisk() { replace_syscalls(real_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  Syscalls real_;
};

int files_in(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<int>(std::distance(begin(files), end(files)));
}

TEST(AtomicFile, LeavesNothingButTheNewText) {
  const TempTree folder;
  const std::string path = folder.path("file");

  ASSERT_TRUE(write_file_atomically(path, "a long first text"));
  ASSERT_TRUE(write_file_atomically(path, "second"));

  EXPECT_EQ(*read_file(path), "second");
  EXPECT_EQ(files_in(folder.path()), 1);
  EXPECT_TRUE(can_write_file(path));
}

TEST(AtomicFile, KeepsTheOldTextWhenTheDiskIsFull) {
  const TempTree folder;
  const std::string path = folder.path("file");
  ASSERT_TRUE(write_file_atomically(path, "first"));
  const FullDisk full;

  const Status written = write_file_atomically(path, "second");

  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kNoSpace);
  EXPECT_THAT(written.error().what, HasSubstr(path));
  EXPECT_EQ(*read_file(path), "first");
  EXPECT_EQ(files_in(folder.path()), 1) << "the unfinished text is gone";
}

TEST(AtomicFile, SurvivesTheLimitOnTheSizeOfFiles) {
  const TempTree folder;

  const std::string said = tests::in_child([&] {
    const rlimit limit{10, 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status written = write_file_atomically(folder.path("file"), std::string(100, 'x'));
    return std::string(written ? "written" : written.error().what);
  });

  EXPECT_THAT(said, HasSubstr("File too large"));
  EXPECT_EQ(files_in(folder.path()), 0);
}

TEST(AtomicFile, KeepsALinkAndReplacesWhatItPointsTo) {
  const TempTree folder;
  folder.write("real", "old");
  folder.link("link", folder.path("real"));

  ASSERT_TRUE(write_file_atomically(folder.path("link"), "new"));

  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(*read_file(folder.path("real")), "new");
}

TEST(AtomicFile, KeepsTheModeOfAFileThatWasThere) {
  const TempTree tree;
  tree.write("private", "old");
  ASSERT_EQ(::chmod(tree.path("private").c_str(), 0600), 0);

  ASSERT_TRUE(write_file_atomically(tree.path("private"), "new"));

  struct stat status {};
  ASSERT_EQ(::stat(tree.path("private").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

TEST(AtomicFile, KeepsTheOwnerOfAFileThatRootReplaces) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give files away";
  }
  const TempTree tree;
  tree.write("theirs", "old");
  ASSERT_EQ(::chown(tree.path("theirs").c_str(), 65534, 65534), 0);

  ASSERT_TRUE(write_file_atomically(tree.path("theirs"), "new"));

  struct stat status {};
  ASSERT_EQ(::stat(tree.path("theirs").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 65534U);
}

TEST(AtomicFile, DoesNotFollowALinkOfAnotherUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make links of others";
  }
  const TempTree tree;
  tree.write("mine", "old");
  tree.link("report.xml", "mine");
  ASSERT_EQ(::lchown(tree.path("report.xml").c_str(), 65534, 65534), 0);

  const Status written = write_file_atomically(tree.path("report.xml"), "new");

  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().what, HasSubstr("is a link of another user (uid 65534)"));
  EXPECT_EQ(*read_file(tree.path("mine")), "old");
  EXPECT_FALSE(can_write_file(tree.path("report.xml")));
}

TEST(AtomicFile, FollowsALinkToAnotherFolderByItsOwnPlace) {
  const TempTree tree;
  tree.write("below/real", "old");
  tree.link("link", "below/other");
  tree.link("below/other", "real");

  ASSERT_TRUE(write_file_atomically(tree.path("link"), "new"));

  EXPECT_EQ(*read_file(tree.path("below/real")), "new");
}

TEST(AtomicFile, SaysThatLinksLeadInACircle) {
  const TempTree tree;
  tree.link("a", "b");
  tree.link("b", "a");

  EXPECT_THAT(write_file_atomically(tree.path("a"), "new").error().what,
              HasSubstr("too many links"));
}

TEST(AtomicFile, WritesIntoWhatIsNoFile) {
  const TempTree folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));

  ASSERT_TRUE(can_write_file(path));
  ASSERT_TRUE(write_file_atomically(path, "text"));

  EXPECT_TRUE(std::filesystem::is_fifo(path));
  std::array<char, 10> buffer{};
  const auto size = read_some(reader.get(), buffer);
  ASSERT_TRUE(size);
  EXPECT_EQ(std::string_view(buffer.data(), *size), "text");
}

TEST(AtomicFile, IsReadableAsTheUmaskHasIt) {
  const TempTree folder;
  const std::string path = folder.path("file");

  const mode_t before = ::umask(0027);
  const Status written = write_file_atomically(path, "text");
  ::umask(before);

  ASSERT_TRUE(written);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(AtomicFile, TouchesNoDraftOfAnother) {
  const TempTree folder;
  const std::string draft = fmt::format("file.{}-1.new", ::getpid());
  folder.write("precious", "kept");
  folder.link(draft, folder.path("precious"));

  ASSERT_TRUE(write_file_atomically(folder.path("file"), "text"));

  EXPECT_EQ(*read_file(folder.path("file")), "text");
  EXPECT_EQ(*read_file(folder.path("precious")), "kept");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path(draft)));
}

TEST(AtomicFile, SaysThatThereIsNoFolderForIt) {
  const TempTree folder;
  const Status missing = can_write_file(folder.path("none/file"));
  const Status is_folder = can_write_file(folder.path());
  const Status written = write_file_atomically(folder.path("none/file"), "x");

  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, HasSubstr("none/file"));
  ASSERT_FALSE(is_folder);
  EXPECT_THAT(is_folder.error().what, HasSubstr("it is a folder"));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().what, HasSubstr("none/file"));
}

TEST(AtomicFile, SaysThatAFolderIsReadOnly) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root may write everywhere";
  }
  EXPECT_FALSE(can_write_file("/proc/file"));
}

}  // namespace
}  // namespace tidemark
