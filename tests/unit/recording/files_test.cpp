// SPDX-License-Identifier: Apache-2.0
#include "recording/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "common/io.h"
#include "recording/run_reader.h"
#include "recording/run_writer.h"
#include "recording/sqlite.h"
#include "tests/support/in_child.h"
#include "tests/support/memory_sink.h"
#include "tests/support/sample_run.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

using testing::HasSubstr;
using tests::TempTree;

// A recorder at work: the log starts anew, with other salts, under the first `changes` reads.
class ChangingLog {
 public:
  ChangingLog(const TempTree& dir, int changes) : previous_(replace_syscalls(Syscalls{})) {
    Syscalls table = previous_;
    table.read = read_and_change;
    replace_syscalls(table);
    state = {&dir, previous_.read, changes, 0};
    write_log();
  }
  ~ChangingLog() { replace_syscalls(previous_); }
  ChangingLog(const ChangingLog&) = delete;
  ChangingLog& operator=(const ChangingLog&) = delete;

  static std::string log_number(int number) {
    return std::string(32, static_cast<char>('0' + number)) + " frames";
  }
  static int number() { return state.number; }

 private:
  struct State {
    const TempTree* dir;
    ssize_t (*read)(int, void*, std::size_t);
    int changes;
    int number;
  };
  static void write_log() {
    state.dir->write("run-wal", log_number(state.number));
    state.dir->write("run", "file " + std::to_string(state.number));
  }
  static ssize_t read_and_change(int fd, void* buffer, std::size_t size) {
    const ssize_t n = state.read(fd, buffer, size);
    if (state.changes > 0) {
      --state.changes;
      ++state.number;
      write_log();
    }
    return n;
  }

  static inline State state{};
  Syscalls previous_;
};

TEST(RunCopy, IsMadeAgainWhenTheLogStartedAnew) {
  const TempTree dir;
  const ChangingLog log(dir, 1);

  const auto copy = copy_run(dir.path("run"));

  ASSERT_TRUE(copy) << copy.error().what;
  EXPECT_EQ(ChangingLog::number(), 1);
  EXPECT_EQ(*read_file(copy->file("run")), "file 1");
  EXPECT_EQ(*read_file(copy->file("run-wal")), ChangingLog::log_number(1));
}

TEST(RunCopy, IsGivenUpWhenTheLogChangesAllTheTime) {
  const TempTree dir;
  const ChangingLog log(dir, 50);

  const auto copy = copy_run(dir.path("run"));

  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().what, dir.path("run") +
                                   " changes while it is being copied; read it when its recording "
                                   "has ended");
}

TEST(RunCopy, NamesThePartThatCannotBeRead) {
  const TempTree dir;
  dir.write("run", "file");
  dir.make_directory("run-wal");

  const auto copy = copy_run(dir.path("run"));

  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().what, dir.path("run-wal") + " is not a regular file: it is not read");
}

// Whoever may write into the folder can put these beside a run file.
class HostileCompanionTest : public testing::TestWithParam<const char*> {
 protected:
  HostileCompanionTest() {
    auto writer = RunWriter::create(dir.path("run"));
    EXPECT_TRUE(writer && (*writer)->begin(tests::full_run_info()));
    EXPECT_TRUE((*writer)->add(tests::plain_tick(0)) && (*writer)->end(0.0));
  }
  std::string companion() const { return std::string("run") + GetParam(); }
  void expect_refusal() const {
    const auto reader = RunReader::open(dir.path("run"));
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().what,
              dir.path(companion()) + " is not a regular file: it is not read");
    const auto copy = copy_run(dir.path("run"));
    EXPECT_TRUE(copy || !copy.error().what.empty());  // in any case it comes back
  }

  TempTree dir;
};

TEST_P(HostileCompanionTest, ALinkToADeviceIsNotFollowed) {
  dir.link(companion(), "/dev/zero");
  expect_refusal();
}

TEST_P(HostileCompanionTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(dir.path(companion()).c_str(), 0600), 0);
  expect_refusal();
}

INSTANTIATE_TEST_SUITE_P(All, HostileCompanionTest, testing::Values("-wal", "-journal", "-shm"));

TEST(PendingFile, DoesNotReplaceWhatALinkOfAnotherUserPointsTo) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make links of others";
  }
  const TempTree dir;
  dir.write("mine", "content");
  dir.write("mine-wal", "log");
  dir.link("run", "mine");
  ASSERT_EQ(::lchown(dir.path("run").c_str(), 65534, 65534), 0);

  const auto writer = RunWriter::create(dir.path("run"), {.replace = true});

  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().what, HasSubstr("is a link of another user"));
  EXPECT_EQ(*read_file(dir.path("mine")), "content");
  EXPECT_EQ(*read_file(dir.path("mine-wal")), "log");
}

// What `cp FILE` gives while another program has the file open: a file that wants a log, without
// one.
void record_file_without_its_log(const TempTree& dir) {
  auto writer = RunWriter::create(dir.path("run"));
  ASSERT_TRUE(writer && (*writer)->begin(tests::full_run_info()));
  ASSERT_TRUE((*writer)->add(tests::plain_tick(0)));
  auto other = Database::open(dir.path("run"), Database::Mode::kReadOnly);
  ASSERT_TRUE(other && other->query_integer("SELECT count(*) FROM ticks"));
  ASSERT_TRUE((*writer)->end(0.0));
  dir.write("read-only/run", *read_file(dir.path("run")));
}

TEST(RunCopy, LetsAFileBeReadInAFolderThatIsNotWritable) {
  const TempTree dir;
  record_file_without_its_log(dir);
  ::chmod(dir.path().c_str(), 0755);
  ::chmod(dir.path("read-only").c_str(), 0555);

  const std::string answer = tests::in_child([&]() -> std::string {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) {
      return "cannot give up root";
    }
    auto reader = RunReader::open(dir.path("read-only/run"));
    if (!reader) {
      return reader.error().what;
    }
    tests::MemorySink sink;
    const auto summary = (*reader)->read(sink);
    return summary ? sink.calls + ": " + summary->notes.at(0) : summary.error().what;
  });

  ::chmod(dir.path("read-only").c_str(), 0755);
  EXPECT_THAT(answer, HasSubstr("bte: read from a private copy, because it cannot be read in place "
                                "(" +
                                dir.path("read-only/run") + ": "));
}

}  // namespace
}  // namespace tidemark::recording
