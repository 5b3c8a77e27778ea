// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/process_handle.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr pid_t kPid = 4711;
constexpr std::uint64_t kKib = 1024;

std::string stat_line(std::uint64_t start_ticks) {
  return "4711 (python3) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 " + std::to_string(start_ticks) +
         " 1000 10 0 1 1 140723474731328 0\n";
}

// A /proc of one process, made of ordinary files.
class ProcessHandleTest : public testing::Test {
 protected:
  ProcessHandleTest() {
    proc_.write("4711/stat", stat_line(99));
    proc_.write("4711/status",
                "Name:\tpython3\nState:\tS (sleeping)\nVmRSS:\t10 kB\nThreads:\t1\n");
  }

  ProcessHandle opened() {
    auto handle = ProcessHandle::open(proc_.path(), {kPid, 99});
    EXPECT_TRUE(handle);
    return std::move(*handle);
  }

  tests::TempTree proc_;
};

TEST_F(ProcessHandleTest, IsIdentifiedByPidAndStartTime) {
  const auto key = process_key_of(proc_.path(), kPid);

  ASSERT_TRUE(key);
  EXPECT_EQ(*key, (ProcessKey{kPid, 99}));
}

TEST_F(ProcessHandleTest, ReadsStatusAnewEachTime) {
  const ProcessHandle handle = opened();
  ASSERT_TRUE(handle.status());

  proc_.write("4711/status", "Name:\tother\nState:\tR (running)\nVmRSS:\t20 kB\nThreads:\t1\n");
  const auto status = handle.status();

  ASSERT_TRUE(status);
  EXPECT_EQ(status->comm, "other");
  EXPECT_EQ(status->rss_bytes, 20 * kKib);
}

TEST_F(ProcessHandleTest, ReadsAStatusThatIsLargerThanUsual) {
  proc_.write("4711/status", "Name:\tx\nState:\tS\nGroups:\t" + std::string(100'000, '7') +
                                 "\nVmRSS:\t30 kB\nThreads:\t1\n");

  const auto status = opened().status();

  ASSERT_TRUE(status);
  EXPECT_EQ(status->rss_bytes, 30 * kKib);
}

TEST_F(ProcessHandleTest, RefusesAReusedPid) {
  const auto handle = ProcessHandle::open(proc_.path(), {kPid, 98});

  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, Errc::kGone);
}

TEST_F(ProcessHandleTest, SaysThatAMissingProcessIsGone) {
  const auto handle = ProcessHandle::open(proc_.path(), {4712, 99});

  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, Errc::kGone);
}

TEST_F(ProcessHandleTest, PrefersTheRollup) {
  proc_.write("4711/smaps_rollup",
              "1-2 ---p 0 00:00 0 [rollup]\nRss: 9 kB\nPss: 8 kB\nPss_Anon: 5 kB\nPss_File: 2 kB\n"
              "Pss_Shmem: 1 kB\n");
  proc_.write("4711/smaps", "1-2 rw-p 0 00:00 0\nRss: 70 kB\nPss: 70 kB\n");

  const auto pss = opened().pss();

  ASSERT_TRUE(pss);
  EXPECT_EQ(pss->pss_bytes, 8 * kKib);
  EXPECT_FALSE(pss->split_estimated);
}

TEST_F(ProcessHandleTest, FallsBackToSmapsWithoutARollup) {
  proc_.write("4711/smaps", "1-2 rw-p 0 00:00 0\nRss: 70 kB\nPss: 60 kB\n");

  const auto pss = opened().pss();

  ASSERT_TRUE(pss);
  EXPECT_EQ(pss->pss_anon_bytes, 60 * kKib);
  EXPECT_TRUE(pss->split_estimated);
}

TEST_F(ProcessHandleTest, ReadsSmapsWhenTheRollupHasNoSplit) {
  proc_.write("4711/smaps_rollup", "1-2 ---p 0 00:00 0 [rollup]\nRss: 9 kB\nPss: 8 kB\n");
  proc_.write("4711/smaps", "1-2 rw-p 0 00:00 0\nRss: 9 kB\nPss: 8 kB\n");
  ProcessHandle handle = opened();

  for (int i = 0; i < 2; ++i) {
    const auto pss = handle.pss();

    ASSERT_TRUE(pss);
    EXPECT_EQ(pss->pss_anon_bytes, 8 * kKib);
  }
}

TEST_F(ProcessHandleTest, SumsSmapsOfManyMegabytes) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) {
    text += "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \nRss:   4 kB\nPss:   4 kB\n";
  }
  proc_.write("4711/smaps", text);

  const auto pss = opened().pss();

  ASSERT_TRUE(pss);
  EXPECT_EQ(pss->pss_anon_bytes, 160'000 * kKib);
}

TEST_F(ProcessHandleTest, HasNoPssWithoutMemory) {
  proc_.write("4711/smaps", "");

  const auto pss = opened().pss();

  ASSERT_FALSE(pss);
  EXPECT_EQ(pss.error().code, Errc::kGone);
}

TEST_F(ProcessHandleTest, SplitsArgvAndKeepsEmptyWords) {
  proc_.write("4711/cmdline", std::string("python3\0\0train.py\0--lr\0", 23));

  const auto argv = opened().argv();

  ASSERT_TRUE(argv);
  EXPECT_THAT(*argv, ElementsAre("python3", "", "train.py", "--lr"));
}

TEST_F(ProcessHandleTest, TakesARewrittenTitleAsOneWord) {
  proc_.write("4711/cmdline", "ray::train worker");

  const auto argv = opened().argv();

  ASSERT_TRUE(argv);
  EXPECT_THAT(*argv, ElementsAre("ray::train worker"));
}

TEST_F(ProcessHandleTest, CutsAnEndlessArgv) {
  proc_.write("4711/cmdline", std::string(1U << 20U, 'x'));

  const auto argv = opened().argv();

  ASSERT_TRUE(argv);
  ASSERT_EQ(argv->size(), 1U);
  EXPECT_EQ(argv->front().size(), 128U << 10U);
}

TEST_F(ProcessHandleTest, KeepsOnlyTheVariablesAskedFor) {
  const char environ[] = "PATH=/bin\0RANK=3\0HF_TOKEN=secret\0RANKS=9\0LOCAL_RANK=\0RANK";
  proc_.write("4711/environ", std::string(environ, sizeof environ));

  const auto found = opened().environment(std::vector<std::string>{"RANK", "LOCAL_RANK"});

  ASSERT_TRUE(found);
  EXPECT_THAT(*found, ElementsAre("RANK=3", "LOCAL_RANK="));
}

TEST_F(ProcessHandleTest, CollectsTheChildrenOfAllThreads) {
  proc_.write("4711/task/4711/children", "12 13 ");
  proc_.write("4711/task/4720/children", "14 ");
  proc_.write("4711/task/4721/children", "");

  const auto children = opened().children();

  ASSERT_TRUE(children);
  EXPECT_THAT(*children, UnorderedElementsAre(12, 13, 14));
}

TEST_F(ProcessHandleTest, AsksOnlyTheMainThreadOfAProcessWithOne) {
  proc_.write("4711/task/4711/children", "12 13 ");
  proc_.write("4711/task/4720/children", "14 ");

  const auto children = opened().children(1);

  ASSERT_TRUE(children);
  EXPECT_THAT(*children, ElementsAre(12, 13));
}

TEST_F(ProcessHandleTest, ReadsAListOfChildrenThatIsLongerThanAPage) {
  std::string text;
  for (int pid = 100'000; pid < 105'000; ++pid) {
    text += std::to_string(pid) + ' ';
  }
  proc_.write("4711/task/4711/children", text);

  const auto children = opened().children(1);

  ASSERT_TRUE(children);
  EXPECT_EQ(children->size(), 5000U);
  EXPECT_EQ(children->back(), 104'999);
}

TEST_F(ProcessHandleTest, SaysWhenTheKernelListsNoChildren) {
  proc_.make_directory("4711/task/4711");

  for (const auto& children : {opened().children(), opened().children(1)}) {
    ASSERT_FALSE(children);
    EXPECT_EQ(children.error().code, Errc::kUnsupported);
    EXPECT_THAT(children.error().what, HasSubstr("CONFIG_PROC_CHILDREN"));
  }
}

TEST_F(ProcessHandleTest, NamesTheFileThatIsMalformed) {
  proc_.write("4711/statm", "nothing\n");

  const auto statm = opened().statm();

  ASSERT_FALSE(statm);
  EXPECT_EQ(statm.error().code, Errc::kMalformed);
  EXPECT_THAT(statm.error().what, HasSubstr("4711/statm"));
}

// Lowers the limit of descriptors so that few are left above those in use.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 40;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(ProcessHandleTest, KeepsTwoDescriptorsWhileThereAreEnough) {
  const int before = ::dup(0);
  ::close(before);

  const ProcessHandle handle = opened();

  EXPECT_TRUE(handle.keeps_descriptors());
  const int after = ::dup(0);
  ::close(after);
  EXPECT_LE(after - before, 2);
}

TEST_F(ProcessHandleTest, ReadsStatmFromAKeptDescriptor) {
  proc_.write("4711/statm", "9 5 2 1 0 4 0\n");
  ProcessHandle handle = opened();
  ASSERT_TRUE(handle.statm());
  proc_.write("4711/statm", "9 6 2 1 0 4 0\n");

  const int before = ::dup(0);
  ::close(before);
  const auto statm = handle.statm();
  const int after = ::dup(0);
  ::close(after);

  ASSERT_TRUE(statm);
  EXPECT_EQ(*statm, (StatmFields{9, 6, 2}));
  EXPECT_EQ(after, before) << "no further descriptor";
}

TEST_F(ProcessHandleTest, NamesAMalformedStatm) {
  proc_.write("4711/statm", "nothing\n");

  const auto statm = opened().statm();

  ASSERT_FALSE(statm);
  EXPECT_EQ(statm.error().code, Errc::kMalformed);
  EXPECT_THAT(statm.error().what, HasSubstr("4711/statm"));
}

TEST_F(ProcessHandleTest, WorksWithoutKeptDescriptorsWhenTheyRunOut) {
  const FewDescriptors few;
  proc_.write("4711/cmdline", "python3");
  proc_.write("4711/statm", "9 5 2 1 0 4 0\n");
  ProcessHandle handle = opened();
  ASSERT_FALSE(handle.keeps_descriptors());

  EXPECT_TRUE(handle.status());
  EXPECT_TRUE(handle.statm());
  EXPECT_TRUE(handle.argv());

  proc_.write("4711/stat", stat_line(100));  // another process gets the pid
  const auto status = handle.status();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kGone);
  const auto statm = handle.statm();
  ASSERT_FALSE(statm);
  EXPECT_EQ(statm.error().code, Errc::kGone);
}

}  // namespace
}  // namespace tidemark::monitor
