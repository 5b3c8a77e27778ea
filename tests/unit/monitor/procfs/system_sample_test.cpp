// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/system_sample.h"
#include "common/units.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

constexpr pid_t kPid = 42;

class SystemReaderTest : public testing::Test {
 protected:
  SystemReaderTest() {
    root_.write("proc/meminfo",
                "MemTotal: 4096 kB\nMemAvailable: 2048 kB\nSwapTotal: 512 kB\nSwapFree: 256 kB\n"
                "Shmem: 64 kB\n");
    root_.write("proc/vmstat", "nr_free_pages 5\noom_kill 3\n");
  }

  void use_v2() {
    root_.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    root_.write("proc/42/cgroup", "0::/job/step\n");
    root_.write("sys/fs/cgroup/job/memory.max", "1048576\n");
    root_.write("sys/fs/cgroup/job/step/memory.events", "low 0\noom 1\noom_kill 1\n");
  }
  void use_v1() {
    root_.write("proc/self/mountinfo", "35 31 0:32 / /cgroup rw - cgroup cgroup rw,memory\n");
    root_.write("proc/42/cgroup", "4:memory:/job\n");
    root_.write("cgroup/job/memory.limit_in_bytes", "1048576\n");
  }

  tests::TempTree root_;
};

TEST_F(SystemReaderTest, GivesTheMachinesMemory) {
  SystemReader reader(root_.path(), kPid);

  const SystemSample sample = reader.sample();

  EXPECT_EQ(sample.total_bytes, 4 * kMiB);
  EXPECT_EQ(sample.available_bytes, 2 * kMiB);
  EXPECT_EQ(sample.swap_total_bytes, 512U * 1024);
  EXPECT_EQ(sample.swap_free_bytes, 256U * 1024);
  EXPECT_EQ(sample.shmem_bytes, 64U * 1024);
}

TEST_F(SystemReaderTest, LeavesUnknownWhatTheKernelDoesNotOffer) {
  SystemReader reader(root_.path(), kPid);

  const SystemSample sample = reader.sample();

  EXPECT_EQ(sample.psi_some_avg10, std::nullopt);
  EXPECT_EQ(sample.cgroup_used_bytes, std::nullopt);
  EXPECT_EQ(sample.cgroup_limit_bytes, std::nullopt);
  EXPECT_EQ(sample.cgroup_psi_some_avg10, std::nullopt);
}

TEST_F(SystemReaderTest, SeparatesPressureOfTheMachineFromThatOfTheGroup) {
  use_v2();
  root_.write("proc/pressure/memory", "some avg10=1.50 avg60=0\nfull avg10=0.50 avg60=0\n");
  root_.write("sys/fs/cgroup/job/memory.pressure", "some avg10=40.00\nfull avg10=30.00\n");
  SystemReader reader(root_.path(), kPid);

  const SystemSample sample = reader.sample();

  EXPECT_EQ(sample.psi_some_avg10, 1.5);
  EXPECT_EQ(sample.psi_full_avg10, 0.5);
  EXPECT_EQ(sample.cgroup_psi_some_avg10, 40.0);
  EXPECT_EQ(sample.cgroup_psi_full_avg10, 30.0);
}

TEST_F(SystemReaderTest, CountsAnonSharedAndSwapOfTheLimitingV2Group) {
  use_v2();
  root_.write("sys/fs/cgroup/job/memory.stat",
              "anon 1000\nfile 9000\nshmem 200\nunevictable 500\nswapcached 30\n");
  root_.write("sys/fs/cgroup/job/memory.swap.current", "70\n");
  SystemReader reader(root_.path(), kPid);

  const SystemSample sample = reader.sample();

  EXPECT_EQ(sample.cgroup_used_bytes, 1000U + 200 + 70 - 30);
  EXPECT_EQ(sample.cgroup_limit_bytes, kMiB);
}

TEST_F(SystemReaderTest, CountsWithoutSwapAccounting) {
  use_v2();
  root_.write("sys/fs/cgroup/job/memory.stat", "anon 1000\nshmem 200\n");
  SystemReader reader(root_.path(), kPid);

  EXPECT_EQ(reader.sample().cgroup_used_bytes, 1200U);
}

TEST_F(SystemReaderTest, CountsTheTotalsOfAV1Group) {
  use_v1();
  root_.write("cgroup/job/memory.stat",
              "rss 1\nshmem 1\nswap 1\ntotal_cache 9000\ntotal_rss 1000\ntotal_shmem 200\n"
              "total_swap 70\ntotal_unevictable 500\n");
  SystemReader reader(root_.path(), kPid);

  EXPECT_EQ(reader.sample().cgroup_used_bytes, 1270U);
}

TEST_F(SystemReaderTest, DoesNotGuessTheUsageOfAV1GroupWithoutShmem) {
  use_v1();
  root_.write("cgroup/job/memory.stat", "total_cache 9000\ntotal_rss 1000\n");
  SystemReader reader(root_.path(), kPid);

  EXPECT_EQ(reader.sample().cgroup_used_bytes, std::nullopt);
}

TEST_F(SystemReaderTest, CountsOomKillsOfTheProcessOwnGroupOnce) {
  use_v2();
  SystemReader reader(root_.path(), kPid);
  EXPECT_EQ(reader.new_oom_kills().count, 0U);

  root_.write("sys/fs/cgroup/job/step/memory.events", "low 0\noom 3\noom_kill 3\n");
  const OomKills kills = reader.new_oom_kills();

  EXPECT_EQ(kills.count, 2U);
  EXPECT_FALSE(kills.whole_machine);
  EXPECT_EQ(reader.new_oom_kills().count, 0U);
}

TEST_F(SystemReaderTest, CountsOomKillsOfAV1Group) {
  use_v1();
  root_.write("cgroup/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  SystemReader reader(root_.path(), kPid);

  root_.write("cgroup/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");

  EXPECT_EQ(reader.new_oom_kills().count, 1U);
}

TEST_F(SystemReaderTest, SaysWhenOnlyTheMachineCountsOomKills) {
  SystemReader reader(root_.path(), kPid);

  root_.write("proc/vmstat", "nr_free_pages 5\noom_kill 4\n");
  const OomKills kills = reader.new_oom_kills();

  EXPECT_EQ(kills.count, 1U);
  EXPECT_TRUE(kills.whole_machine);
}

TEST_F(SystemReaderTest, FollowsAChangedLimitAndGroup) {
  use_v2();
  SystemReader reader(root_.path(), kPid);
  root_.write("sys/fs/cgroup/other/memory.max", "2097152\n");
  root_.write("sys/fs/cgroup/other/memory.stat", "anon 5\nshmem 6\n");
  root_.write("sys/fs/cgroup/other/memory.events", "oom_kill 9\n");
  root_.write("proc/42/cgroup", "0::/other\n");

  reader.refresh_limit(kPid);

  EXPECT_EQ(reader.limit().bytes, 2 * kMiB);
  EXPECT_EQ(reader.sample().cgroup_used_bytes, 11U);
  EXPECT_EQ(reader.new_oom_kills().count, 0U);
}

TEST_F(SystemReaderTest, KeepsTheLimitOfAProcessThatHasEnded) {
  use_v2();
  SystemReader reader(root_.path(), kPid);
  root_.remove("proc/42");

  reader.refresh_limit(kPid);

  EXPECT_EQ(reader.limit().bytes, kMiB);
}

TEST_F(SystemReaderTest, TellsThePageCacheThatTheGroupIsChargedFor) {
  use_v2();
  root_.write("sys/fs/cgroup/job/memory.stat", "anon 100\nfile 600\nshmem 50\n");
  root_.write("sys/fs/cgroup/job/memory.current", "900\n");

  const SystemSample sample = SystemReader(root_.path(), kPid).sample();

  EXPECT_EQ(sample.cgroup_charged_bytes, 900U);
  EXPECT_EQ(sample.cgroup_cache_bytes, 550U);
}

TEST_F(SystemReaderTest, TellsThePageCacheOfAV1Group) {
  use_v1();
  root_.write("cgroup/job/memory.stat", "total_rss 100\ntotal_cache 600\ntotal_shmem 50\n");
  root_.write("cgroup/job/memory.usage_in_bytes", "700\n");

  const SystemSample sample = SystemReader(root_.path(), kPid).sample();

  EXPECT_EQ(sample.cgroup_charged_bytes, 700U);
  EXPECT_EQ(sample.cgroup_cache_bytes, 550U);
}

}  // namespace
}  // namespace tidemark::monitor
