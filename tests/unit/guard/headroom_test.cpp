// SPDX-License-Identifier: Apache-2.0
#include "guard/headroom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include <fmt/format.h>

#include "tests/support/temp_tree.h"
#include "tests/unit/tracer/no_alloc_scope.h"

namespace tidemark::guard {
namespace {

using testing::HasSubstr;
using tests::NoAllocScope;

constexpr std::int64_t kMib = 1LL << 20U;
constexpr pid_t kPid = 42;

class HeadroomTest : public testing::Test {
 protected:
  HeadroomTest() {
    meminfo(50'000, 0);
    root_.write("proc/pressure/memory",
                "some avg10=3.00 avg60=0 avg300=0 total=1\n"
                "full avg10=2.00 avg60=0 avg300=0 total=1\n");
    root_.write("proc/42/limits", limits("unlimited", "unlimited"));
    options_.root = root_.path();
    options_.groups_of = {kPid};
    options_.resources_of = {kPid};
  }

  static std::string limits(const std::string& address_space, const std::string& data) {
    return fmt::format(
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             {:<20} unlimited            bytes     \n"
        "Max address space         {:<20} unlimited            bytes     \n",
        data, address_space);
  }
  void meminfo(std::int64_t available_mib, std::int64_t swap_free_mib) const {
    root_.write("proc/meminfo",
                fmt::format("MemTotal: {} kB\nMemAvailable: {} kB\nSwapFree: {} kB\n",
                            60'000 * 1024, available_mib * 1024, swap_free_mib * 1024));
  }
  void v2_group(std::int64_t current_mib, std::int64_t anon_mib, std::int64_t file_mib,
                std::int64_t slab_mib, std::int64_t swap_mib) const {
    root_.write("proc/self/mountinfo",
                "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
    root_.write("proc/42/cgroup", "0::/jobs/a\n");
    root_.write("sys/fs/cgroup/jobs/a/memory.max", fmt::format("{}\n", 1000 * kMib));
    root_.write("sys/fs/cgroup/jobs/a/memory.high", "max\n");
    root_.write("sys/fs/cgroup/jobs/a/memory.current", fmt::format("{}\n", current_mib * kMib));
    root_.write("sys/fs/cgroup/jobs/a/memory.swap.current", fmt::format("{}\n", swap_mib * kMib));
    root_.write("sys/fs/cgroup/jobs/a/memory.stat",
                fmt::format("anon {}\nfile {}\nshmem 0\ninactive_file {}\nactive_file 0\n"
                            "slab_reclaimable {}\n",
                            anon_mib * kMib, file_mib * kMib, file_mib * kMib, slab_mib * kMib));
    root_.write("sys/fs/cgroup/jobs/a/memory.pressure",
                "some avg10=40.00 avg60=0 avg300=0 total=1\n"
                "full avg10=30.50 avg60=0 avg300=0 total=1\n");
  }

  std::int64_t free_mib() {
    HeadroomReader reader(options_);
    return reader.read(nullptr).value().free_bytes / kMib;
  }

  tests::TempTree root_;
  HeadroomReader::Options options_;
};

constexpr std::uint64_t mib(std::uint64_t count) { return count << 20U; }

// A sample of a process with so much memory of its own.
ProcessSample held(pid_t pid, std::uint64_t anon_mib) {
  ProcessSample sample;
  sample.key = {pid, 1};
  sample.rss_anon_bytes = mib(anon_mib);
  return sample;
}

TEST_F(HeadroomTest, OfTheMachineIsWhatIsAvailableAndFreeSwap) {
  meminfo(20'000, 500);
  HeadroomReader reader(options_);

  const Headroom headroom = reader.read(nullptr).value();

  EXPECT_EQ(headroom.free_bytes, 20'500 * kMib);
  EXPECT_EQ(headroom.keep_free_bytes, 2ULL << 30U) << "5 % would be 3 GB: no more than 2 GiB";
  EXPECT_EQ(reader.limits()[headroom.limit].source, "physical memory");
}

TEST_F(HeadroomTest, PageCacheOfAGroupIsFree) {
  v2_group(/*current=*/990, /*anon=*/400, /*file=*/580, /*slab=*/0, /*swap=*/0);
  EXPECT_EQ(free_mib(), 600);
}

TEST_F(HeadroomTest, SwappedMemoryOfAGroupIsNot) {
  v2_group(/*current=*/990, /*anon=*/400, /*file=*/580, /*slab=*/0, /*swap=*/300);
  EXPECT_EQ(free_mib(), 300);
}

TEST_F(HeadroomTest, KernelMemoryOfAGroupCountsWhenNoPageCacheIsLeftToGiveUp) {
  v2_group(/*current=*/950, /*anon=*/400, /*file=*/10, /*slab=*/40, /*swap=*/0);
  EXPECT_EQ(free_mib(), 100) << "950 less page cache and what can be reclaimed";
}

TEST_F(HeadroomTest, PageCacheOfAGroupFarFromItsLimitDoesNotCountEither) {
  v2_group(/*current=*/300, /*anon=*/100, /*file=*/200, /*slab=*/0, /*swap=*/0);
  EXPECT_EQ(free_mib(), 900) << "the forecast divides all that is free";
}

TEST_F(HeadroomTest, EachTrainersControlGroupsCountAndSharedOnesOnce) {
  v2_group(/*current=*/300, /*anon=*/100, /*file=*/200, /*slab=*/0, /*swap=*/0);
  root_.write("sys/fs/cgroup/jobs/memory.max", fmt::format("{}\n", 40'000 * kMib));
  root_.write("proc/43/cgroup", "0::/jobs/b\n");
  root_.write("proc/44/cgroup", "0::/jobs/b\n");
  root_.write("sys/fs/cgroup/jobs/b/memory.max", fmt::format("{}\n", 500 * kMib));
  root_.write("sys/fs/cgroup/jobs/b/memory.current", fmt::format("{}\n", 450 * kMib));
  options_.groups_of = {42, 43, 44};

  HeadroomReader reader(options_);
  const Headroom headroom = reader.read(nullptr).value();

  EXPECT_EQ(headroom.free_bytes, 50 * kMib);
  EXPECT_THAT(reader.limits()[headroom.limit].source, HasSubstr("/jobs/b"));
  EXPECT_EQ(reader.limits().size(), 4U) << "two groups, the one above them, the machine";
}

TEST_F(HeadroomTest, OfVersionOneCountsWhatIsBelowTheGroup) {
  root_.write("proc/self/mountinfo",
              "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  root_.write("proc/42/cgroup", "4:memory:/job\n");
  root_.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", fmt::format("{}\n", 800 * kMib));
  root_.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", fmt::format("{}\n", 790 * kMib));
  root_.write("sys/fs/cgroup/memory/job/memory.stat",
              fmt::format("total_rss {}\ntotal_shmem {}\ntotal_swap 0\ntotal_inactive_file {}\n"
                          "total_active_file 0\n",
                          500 * kMib, 100 * kMib, 150 * kMib));
  HeadroomReader reader(options_);

  const Headroom headroom = reader.read(nullptr).value();

  EXPECT_EQ(headroom.free_bytes, 200 * kMib);
  EXPECT_EQ(headroom.keep_free_bytes, 40U * kMib);
  EXPECT_THAT(reader.limits()[headroom.limit].source, HasSubstr("cgroup v1"));
}

TEST_F(HeadroomTest, OfVersionOneAGroupThatDoesNotCountWhatIsBelowSetsNoLimit) {
  root_.write("proc/self/mountinfo",
              "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  root_.write("proc/42/cgroup", "4:memory:/a/job\n");
  root_.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
  root_.write("sys/fs/cgroup/memory/a/memory.use_hierarchy", "0\n");
  root_.write("sys/fs/cgroup/memory/a/job/memory.limit_in_bytes", fmt::format("{}\n", 800 * kMib));
  const HeadroomReader reader(options_);

  ASSERT_EQ(reader.limits().size(), 2U) << "its own group and the machine";
  EXPECT_EQ(reader.limits()[0].bytes, 800U * kMib);
}

TEST_F(HeadroomTest, OfVersionOneALimitAboveTheContainerIsSeen) {
  root_.write("proc/self/mountinfo",
              "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  root_.write("proc/42/cgroup", "4:memory:/\n");
  root_.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root_.write("sys/fs/cgroup/memory/memory.usage_in_bytes", fmt::format("{}\n", 790 * kMib));
  root_.write("sys/fs/cgroup/memory/memory.stat",
              fmt::format("total_rss {}\ntotal_shmem 0\ntotal_inactive_file {}\n"
                          "total_active_file 0\nhierarchical_memory_limit {}\n",
                          500 * kMib, 290 * kMib, 900 * kMib));
  HeadroomReader reader(options_);

  const Headroom headroom = reader.read(nullptr).value();

  EXPECT_EQ(headroom.free_bytes, 400 * kMib);
  EXPECT_THAT(reader.limits()[headroom.limit].source, HasSubstr("limit above"));
}

TEST_F(HeadroomTest, AGroupAboveWithNeighboursMayBeNearer) {
  v2_group(/*current=*/300, /*anon=*/250, /*file=*/0, /*slab=*/0, /*swap=*/0);
  root_.write("sys/fs/cgroup/jobs/memory.max", fmt::format("{}\n", 2000 * kMib));
  root_.write("sys/fs/cgroup/jobs/memory.current", fmt::format("{}\n", 1950 * kMib));
  root_.write("sys/fs/cgroup/jobs/memory.stat",
              fmt::format("anon {}\nshmem 0\ninactive_file 0\nactive_file 0\n", 1940 * kMib));
  HeadroomReader reader(options_);

  const Headroom headroom = reader.read(nullptr).value();

  EXPECT_EQ(headroom.free_bytes, 50 * kMib);
  EXPECT_EQ(reader.limits()[headroom.limit].source, "cgroup v2 memory.max of /jobs");
}

TEST_F(HeadroomTest, ResourceLimitsCountAddressesAndData) {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  root_.write("proc/42/limits",
              limits(fmt::format("{}", 2000 * kMib), fmt::format("{}", 900 * kMib)));
  root_.write("proc/42/statm",
              fmt::format("{} 100 50 10 0 {} 0\n", 700 * kMib / page, 850 * kMib / page));
  HeadroomReader reader(options_);

  const Headroom headroom = reader.read(nullptr).value();

  EXPECT_EQ(headroom.free_bytes, 50 * kMib);
  EXPECT_EQ(reader.limits()[headroom.limit].source, "RLIMIT_DATA of pid 42");
}

TEST_F(HeadroomTest, AGivenLimitCountsTheTreeAndWhatItsMembersGainedSince) {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const auto statm = [&](std::int64_t private_mib) {
    root_.write("proc/42/statm", fmt::format("999999 {} {} 1 0 1 0\n",
                                             (private_mib + 30) * kMib / page, 30 * kMib / page));
  };
  statm(100);
  options_.given_bytes = 500 * kMib;
  HeadroomReader reader(options_);
  const TreeUse tree(root_.path(), 300 * kMib, std::vector{held(kPid, 100), held(4711, 200)});
  EXPECT_EQ(reader.read(&tree).value().free_bytes, 200 * kMib);

  statm(180);

  EXPECT_EQ(reader.read(&tree).value().free_bytes, 120 * kMib);
}

class TreeUseTest : public testing::Test {
 protected:
  void hold(std::int64_t private_mib) {
    const std::int64_t page = ::sysconf(_SC_PAGESIZE);
    root_.write("proc/42/statm", fmt::format("999999 {} {} 1 0 1 0\n",
                                             (private_mib + 30) * kMib / page, 30 * kMib / page));
  }

  tests::TempTree root_;
};

// The list is made a moment after the tick that it goes by.
TEST_F(TreeUseTest, ASpikeThatFallsAfterTheSampleIsNotCountedTwice) {
  hold(20);
  const TreeUse tree(root_.path(), mib(165), std::vector{held(kPid, 165)});
  EXPECT_EQ(tree.read(), mib(20));

  hold(165);  // the next one

  EXPECT_EQ(tree.read(), mib(165));
}

TEST_F(TreeUseTest, AFootprintOfEarlierIsBoundedByWhatTheMembersHoldNow) {
  hold(20);
  const TreeUse tree(root_.path(), mib(165), std::vector{held(kPid, 20)});
  EXPECT_EQ(tree.read(), mib(20));

  hold(185);

  EXPECT_EQ(tree.read(), mib(185));
}

TEST_F(TreeUseTest, NeverIsLessThanOneMemberHolds) {
  hold(150);
  const TreeUse tree(root_.path(), mib(10), std::vector{held(kPid, 150)});

  EXPECT_EQ(tree.read(), mib(150));
}

TEST_F(TreeUseTest, CountsSharedMemoryAndMembersThatHaveNoFile) {
  hold(100);
  ProcessSample other = held(4711, 50);
  other.rss_shmem_bytes = mib(30);
  const TreeUse tree(root_.path(), mib(180), std::vector{held(kPid, 100), other});

  EXPECT_EQ(tree.read(), mib(180));
}

TEST_F(HeadroomTest, WhatIsToBeKeptFreeCanBeGiven) {
  options_.keep_free.bytes = 7 * kMib;
  HeadroomReader reader(options_);
  EXPECT_EQ(reader.read(nullptr).value().keep_free_bytes, 7U * kMib);
}

TEST_F(HeadroomTest, PressureIsThatOfTheGroupWhenItIsHigher) {
  EXPECT_DOUBLE_EQ(HeadroomReader(options_).pressure().value(), 2.0);
  v2_group(300, 250, 0, 0, 0);
  EXPECT_DOUBLE_EQ(HeadroomReader(options_).pressure().value(), 30.5);
}

TEST_F(HeadroomTest, ReadingAllocatesNothingEvenWhenFilesHaveGone) {
  if (!NoAllocScope::works()) {
    GTEST_SKIP() << "a sanitizer has its own malloc";
  }
  v2_group(990, 400, 580, 0, 0);
  root_.write("proc/42/limits", limits("1000000000", "unlimited"));
  root_.write("proc/42/statm", "100 50 20 1 0 1 0\n");
  options_.given_bytes = 500 * kMib;
  HeadroomReader reader(options_);
  const TreeUse tree(root_.path(), 300 * kMib, std::vector{held(kPid, 100)});
  root_.write("proc/42/statm", "");  // as of a process that has ended

  const NoAllocScope scope;
  const auto headroom = reader.read(&tree);
  const auto pressure = reader.pressure();
  const std::size_t calls = scope.calls();

  EXPECT_EQ(calls, 0U);
  EXPECT_TRUE(headroom && pressure);
}

TEST(HeadroomHere, IsReadOfThisMachine) {
  HeadroomReader::Options options;
  options.groups_of = {::getpid()};
  HeadroomReader reader(options);
  const auto headroom = reader.read(nullptr);
  ASSERT_TRUE(headroom);
  EXPECT_GT(headroom->limit_bytes, 0U);
  EXPECT_LE(headroom->free_bytes, static_cast<std::int64_t>(headroom->limit_bytes));
}

}  // namespace
}  // namespace tidemark::guard
