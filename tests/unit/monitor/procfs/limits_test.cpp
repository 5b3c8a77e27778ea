// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/limits.h"
#include "common/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "monitor/procfs/cgroup_files.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr pid_t kPid = 42;

constexpr std::string_view kV2Mount =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr std::string_view kV1Mount =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
constexpr std::string_view kHybridMount =
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

class EffectiveLimitTest : public testing::Test {
 protected:
  EffectiveLimitTest() { root_.write("proc/meminfo", "MemTotal: 65536000 kB\n"); }

  void cgroup(std::string_view text) { root_.write("proc/42/cgroup", text); }
  void mounts(std::string_view text) { root_.write("proc/self/mountinfo", text); }
  void group(const std::string& below, std::string_view content) {
    root_.write("sys/fs/cgroup/" + below, content);
  }
  EffectiveLimit limit() { return effective_limit(root_.path(), kPid); }
  std::string directory(const std::string& below) { return root_.path("sys/fs/cgroup/" + below); }

  tests::TempTree root_;
};

TEST_F(EffectiveLimitTest, IsLimitedByPhysicalMemoryWhenNothingElseIs) {
  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 65536000ULL * 1024);
  EXPECT_EQ(found.source, "physical memory");
  EXPECT_EQ(found.cgroup_directory, "");
}

TEST_F(EffectiveLimitTest, TakesTheSmallestLimitOfAV2Chain) {
  mounts(kV2Mount);
  cgroup("0::/user.slice/job/step\n");
  group("user.slice/job/step/memory.max", "max\n");
  group("user.slice/job/step/memory.high", "max\n");
  group("user.slice/job/memory.max", "1073741824\n");
  group("user.slice/memory.max", "8589934592\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 1024 * kMiB);
  EXPECT_EQ(found.source, "cgroup v2 memory.max of /user.slice/job");
  EXPECT_TRUE(found.cgroup_v2);
  EXPECT_EQ(found.cgroup_directory, directory("user.slice/job"));
  EXPECT_EQ(found.process_cgroup_directory, directory("user.slice/job/step"));
  EXPECT_EQ(found.note, "");
}

TEST_F(EffectiveLimitTest, CountsMemoryHighAsALimit) {
  mounts(kV2Mount);
  cgroup("0::/job\n");
  group("job/memory.max", "1073741824\n");
  group("job/memory.high", "536870912\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 512 * kMiB);
  EXPECT_EQ(found.source, "cgroup v2 memory.high of /job");
}

TEST_F(EffectiveLimitTest, ReadsTheRootOfTheMountInsideAContainer) {
  mounts(kV2Mount);
  cgroup("0::/\n");
  group("memory.max", "2147483648\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 2048 * kMiB);
  EXPECT_EQ(found.source, "cgroup v2 memory.max of /");
  EXPECT_EQ(found.cgroup_directory, root_.path("sys/fs/cgroup"));
}

TEST_F(EffectiveLimitTest, OfTheMachineIsThatOfProcessOneInsideAContainer) {
  mounts(kV2Mount);
  root_.write("proc/1/cgroup", "0::/\n");
  root_.write("proc/1/limits", "Max address space         1024                 1024       bytes\n");
  group("memory.max", "2147483648\n");

  const EffectiveLimit found = machine_limit(root_.path());

  EXPECT_EQ(found.bytes, 2048 * kMiB);
  EXPECT_EQ(found.source, "cgroup v2 memory.max of /");
}

TEST_F(EffectiveLimitTest, ReadsAV1Limit) {
  mounts(kV1Mount);
  cgroup("4:memory:/slurm/job7\n3:cpu,cpuacct:/\n1:name=systemd:/\n");
  group("memory/slurm/job7/memory.limit_in_bytes", "536870912\n");
  group("memory/slurm/memory.limit_in_bytes", "9223372036854771712\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 512 * kMiB);
  EXPECT_EQ(found.source, "cgroup v1 memory.limit_in_bytes of /slurm/job7");
  EXPECT_FALSE(found.cgroup_v2);
}

TEST_F(EffectiveLimitTest, TakesV1sHugeNumberAsUnlimited) {
  mounts(kV1Mount);
  cgroup("4:memory:/job\n");
  group("memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  group("memory/job/memory.stat", "hierarchical_memory_limit 9223372036854771712\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.source, "physical memory");
  EXPECT_EQ(found.cgroup_limit_bytes, std::nullopt);
  EXPECT_EQ(found.cgroup_directory, directory("memory/job"));
}

TEST_F(EffectiveLimitTest, SeesAV1LimitAboveTheContainer) {
  mounts("35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  cgroup("4:memory:/docker/abc\n");
  group("memory/memory.limit_in_bytes", "9223372036854771712\n");
  group("memory/memory.stat", "cache 1\nhierarchical_memory_limit 268435456\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 256 * kMiB);
  EXPECT_EQ(found.source, "cgroup v1 limit above /docker/abc");
  EXPECT_EQ(found.cgroup_directory, directory("memory"));
}

TEST_F(EffectiveLimitTest, IgnoresAV1ParentThatDoesNotCountItsChildren) {
  mounts(kV1Mount);
  cgroup("4:memory:/a/b\n");
  group("memory/a/memory.limit_in_bytes", "1048576\n");
  group("memory/a/memory.use_hierarchy", "0\n");
  group("memory/a/b/memory.limit_in_bytes", "536870912\n");

  EXPECT_EQ(limit().bytes, 512 * kMiB);
}

TEST_F(EffectiveLimitTest, UsesTheV1ControllerOfAHybridLayout) {
  mounts(kHybridMount);
  cgroup("4:memory:/job\n0::/elsewhere\n");
  group("memory/job/memory.limit_in_bytes", "536870912\n");
  group("unified/elsewhere/memory.max", "1048576\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 512 * kMiB);
  EXPECT_FALSE(found.cgroup_v2);
}

TEST_F(EffectiveLimitTest, UsesV2OfAHybridLayoutWithoutAV1MemoryController) {
  mounts(kHybridMount);
  cgroup("3:cpu:/\n0::/job\n");
  group("unified/job/memory.max", "536870912\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 512 * kMiB);
  EXPECT_TRUE(found.cgroup_v2);
}

TEST_F(EffectiveLimitTest, SaysThatAGroupOutsideTheNamespaceIsNotVisible) {
  mounts(kV2Mount);
  cgroup("0::/../other\n");
  group("memory.max", "1048576\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.source, "physical memory");
  EXPECT_THAT(found.note, HasSubstr("/../other"));
}

TEST_F(EffectiveLimitTest, FollowsANamespaceWhoseHostTreeIsMounted) {
  mounts("30 23 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  cgroup("0::/../../system.slice/job\n");
  group("system.slice/job/memory.max", "536870912\n");

  EXPECT_EQ(limit().bytes, 512 * kMiB);
}

TEST_F(EffectiveLimitTest, FallsBackToTheGroupAboveWhenItsOwnWasRemoved) {
  mounts(kV2Mount);
  cgroup("0::/a/b (deleted)\n");
  group("a/memory.max", "536870912\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, 512 * kMiB);
  EXPECT_EQ(found.process_cgroup_directory, directory("a"));
}

TEST_F(EffectiveLimitTest, FindsAMountPointWithBlanks) {
  mounts("30 23 0:26 / /sys/fs/cgroup/my\\040groups rw - cgroup2 cgroup2 rw\n");
  cgroup("0::/job\n");
  group("my groups/job/memory.max", "536870912\n");

  EXPECT_EQ(limit().bytes, 512 * kMiB);
}

TEST_F(EffectiveLimitTest, TakesTheLastOfSeveralMountsOnOnePoint) {
  mounts(std::string("30 23 0:26 /old /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n") +
         std::string(kV2Mount));
  cgroup("0::/job\n");
  group("job/memory.max", "536870912\n");

  EXPECT_EQ(limit().bytes, 512 * kMiB);
}

TEST_F(EffectiveLimitTest, SurvivesGarbageInEveryFile) {
  mounts("x\n- - -\n30 23\n30 23 0:26 / relative - cgroup2 x x\n\xff\xfe\n");
  cgroup("nonsense\n::\n0:memory\n4:memory:relative\n0::/job\n");
  root_.write("proc/42/limits", "Max address space\nMax data size abc def\n");
  root_.write("proc/meminfo", "MemTotal: lots\n");

  const EffectiveLimit found = limit();

  EXPECT_EQ(found.bytes, std::nullopt);
  EXPECT_EQ(found.source, "");
}

TEST_F(EffectiveLimitTest, IgnoresAGroupLimitThatIsNoNumber) {
  mounts(kV2Mount);
  cgroup("0::/job\n");
  for (const std::string_view text : {"", "max\n", "-1\n", "12 34\n", "99999999999999999999\n"}) {
    group("job/memory.max", text);

    EXPECT_EQ(limit().source, "physical memory") << text;
  }
}

TEST_F(EffectiveLimitTest, TakesResourceLimitsFromTheSoftColumn) {
  root_.write("proc/42/limits",
              "Limit                     Soft Limit           Hard Limit           Units     \n"
              "Max data size             1073741824           unlimited            bytes     \n"
              "Max address space         536870912            1073741824           bytes     \n");
  EXPECT_EQ(limit().bytes, 512 * kMiB);
  EXPECT_EQ(limit().source, "RLIMIT_AS");

  root_.write("proc/42/limits",
              "Max data size             268435456            unlimited            bytes     \n"
              "Max address space         unlimited            unlimited            bytes     \n");
  EXPECT_EQ(limit().bytes, 256 * kMiB);
  EXPECT_EQ(limit().source, "RLIMIT_DATA");
}

TEST(PathBelow, ComparesWholeComponents) {
  EXPECT_EQ(path_below("/a/b/c", "/a"), "b/c");
  EXPECT_EQ(path_below("/a", "/a"), "");
  EXPECT_EQ(path_below("/ab", "/a"), std::nullopt);
  EXPECT_EQ(path_below("/", "/a"), std::nullopt);
  EXPECT_EQ(path_below("/a/../b", "/"), std::nullopt);
  EXPECT_EQ(path_below("/../x/y", "/../x"), "y");
}

TEST(ParseCgroup, KeepsColonsInAPath) {
  const auto memberships = parse_cgroup("12:cpu,memory:/a:b/c\n0::/d\n");

  ASSERT_EQ(memberships.size(), 2U);
  EXPECT_THAT(memberships[0].controllers, ElementsAre("cpu", "memory"));
  EXPECT_EQ(memberships[0].path, "/a:b/c");
  EXPECT_TRUE(memberships[1].v2);
}

// Shared memory is among the files of a group, and is no cache.
TEST(CgroupPageCache, IsWhatTheKernelMayDrop) {
  EXPECT_EQ(cgroup_page_cache_bytes("anon 10\nfile 500\nshmem 120\n", true), 380U);
  EXPECT_EQ(cgroup_page_cache_bytes("cache 1\ntotal_cache 500\ntotal_shmem 120\n", false), 380U);
  EXPECT_EQ(cgroup_page_cache_bytes("file 5\nshmem 6\n", true), 0U);
  EXPECT_EQ(cgroup_page_cache_bytes("anon 10\nfile 500\n", true), std::nullopt);
  EXPECT_EQ(cgroup_page_cache_bytes("total_cache 500\n", false), std::nullopt);
}

}  // namespace
}  // namespace tidemark::monitor
