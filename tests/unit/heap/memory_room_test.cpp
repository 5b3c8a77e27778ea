// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/memory_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace tidemark::heap {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1U << 20U;

MemoryRoom::Left left_of(std::uint64_t bytes) { return {bytes, "physical memory"}; }

// Of 1 GB and of 2 GB for it and its parent; 64 GB of the machine are available.
void write_groups(const tests::TempTree& machine) {
  machine.write("proc/4711/cgroup", "0::/job/step\n");
  machine.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  machine.write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 62500000 kB\n");
  machine.write("sys/fs/cgroup/job/step/memory.max", "1000000000\n");
  machine.write("sys/fs/cgroup/job/step/memory.current", "700000000\n");
  machine.write("sys/fs/cgroup/job/step/memory.stat",
                "anon 400000000\ninactive_file 250000000\nactive_file 50000000\n");
  machine.write("sys/fs/cgroup/job/memory.max", "2000000000\n");
  machine.write("sys/fs/cgroup/job/memory.current", "1900000000\n");
  machine.write("sys/fs/cgroup/job/memory.stat", "inactive_file 0\nactive_file 0\n");
}

TEST(MemoryRoom, IsThatOfTheFullestGroupAbove) {
  const tests::TempTree machine;
  write_groups(machine);

  const auto left = MemoryRoom::of(machine.path(), 4711).left();

  ASSERT_TRUE(left);
  EXPECT_EQ(left->bytes, 100'000'000U);
  EXPECT_EQ(left->of, "cgroup v2 memory.max of /job");
}

TEST(MemoryRoom, CountsFilesThatTheKernelCanDropAsLeft) {
  const tests::TempTree machine;
  write_groups(machine);
  machine.write("sys/fs/cgroup/job/memory.max", "max\n");

  EXPECT_EQ(MemoryRoom::of(machine.path(), 4711).left()->bytes, 600'000'000U);
}

TEST(MemoryRoom, IsThatOfTheMachineWithoutALimit) {
  const tests::TempTree machine;
  machine.write("proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n");

  EXPECT_EQ(MemoryRoom::of(machine.path(), 4711).left()->bytes, kMiB);
}

TEST(MemoryRoom, IsUnknownWhereNothingCanBeSeen) {
  const tests::TempTree machine;

  const auto left = MemoryRoom::of(machine.path(), 4711).left();

  EXPECT_FALSE(left);
  EXPECT_EQ(why_no_room({kMiB, kMiB, 0}, left), "");
}

TEST(CopyDemand, IsReadFromTheStatusOfTheProcess) {
  const tests::TempTree machine;
  machine.write("proc/4711/status",
                "Name:\tx\nVmData:\t    3000 kB\nVmStk:\t     132 kB\nVmPTE:\t     100 kB\n"
                "RssAnon:\t    2000 kB\n");

  const CopyDemand demand = copy_demand(machine.path(), 4711);

  EXPECT_EQ(demand.page_table_bytes, 100U << 10U);
  EXPECT_EQ(demand.writable_bytes, 2000U << 10U);
  EXPECT_EQ(demand.reserved_bytes, 3132U << 10U);
}

TEST(CopyDemand, IsRefusedWherePageTablesWouldTakeMuchOfTheRoom) {
  const CopyDemand large{100 * kMiB, 50'000 * kMiB, 0};

  EXPECT_EQ(why_no_room(large, left_of(400 * kMiB)), "");
  EXPECT_THAT(why_no_room(large, left_of(399 * kMiB)),
              HasSubstr("physical memory has 399 MiB left, and 400 MiB are wanted"));
}

TEST(CopyDemand, IsRefusedWhereWritesSoonFillTheRoom) {
  EXPECT_NE(why_no_room({kMiB, 1000 * kMiB, 0}, left_of(60 * kMiB)), "");
  EXPECT_EQ(why_no_room({kMiB, 1000 * kMiB, 0}, left_of(64 * kMiB)), "");
}

TEST(CopyDemand, OfASmallProcessFitsIntoLittleRoom) {
  EXPECT_EQ(why_no_room({kMiB, 9 * kMiB, 0}, left_of(20 * kMiB)), "");
}

TEST(CopyDemand, IsRefusedWhereTheKernelReservesAllMemoryAndOthersWouldGetNone) {
  const tests::TempTree machine;
  machine.write("proc/meminfo", "CommitLimit: 4096 kB\nCommitted_AS: 2048 kB\n");
  const CopyDemand demand{0, 0, 2 * kMiB};
  machine.write("proc/sys/vm/overcommit_memory", "0\n");
  EXPECT_EQ(why_no_promise(machine.path(), demand), "");

  machine.write("proc/sys/vm/overcommit_memory", "2\n");

  EXPECT_THAT(why_no_promise(machine.path(), demand), HasSubstr("vm.overcommit_memory"));
  EXPECT_EQ(why_no_promise(machine.path(), {0, 0, kMiB}), "");
}

}  // namespace
}  // namespace tidemark::heap
