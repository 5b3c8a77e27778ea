// SPDX-License-Identifier: Apache-2.0
#include "guard/job_group.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/temp_tree.h"

namespace tidemark::guard {
namespace {

// The job is processes 42 and 43.
class JobGroupTest : public testing::Test {
 protected:
  JobGroupTest() {
    root_.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    root_.write("proc/42/cgroup", "0::/jobs/a\n");
    root_.write("sys/fs/cgroup/jobs/a/cgroup.kill", "");
    root_.write("sys/fs/cgroup/jobs/a/cgroup.procs", "42\n43\n");
  }
  bool has_own_group() const {
    return static_cast<bool>(
        open_job_group(root_.path(), std::vector<ProcessKey>{{42, 1}, {43, 1}}).kill);
  }

  tests::TempTree root_;
};

TEST_F(JobGroupTest, IsUsedWhenItIsTheJobsAlone) { EXPECT_TRUE(has_own_group()); }

TEST_F(JobGroupTest, IsNotWhenSomebodyElseIsInIt) {
  root_.write("sys/fs/cgroup/jobs/a/cgroup.procs", "42\n43\n99\n");
  EXPECT_FALSE(has_own_group());
}

TEST_F(JobGroupTest, IsNotWhenGroupsAreBelowIt) {
  root_.make_directory("sys/fs/cgroup/jobs/a/other");
  EXPECT_FALSE(has_own_group());
}

TEST_F(JobGroupTest, IsNeverTheRootOfAll) {
  root_.write("proc/42/cgroup", "4:memory:/jobs/a\n0::/\n");
  root_.write("sys/fs/cgroup/cgroup.kill", "");
  root_.write("sys/fs/cgroup/cgroup.procs", "42\n43\n");
  EXPECT_FALSE(has_own_group());
}

TEST_F(JobGroupTest, IsNotWhereTheKernelHasNoSuchFile) {
  root_.remove("sys/fs/cgroup/jobs/a/cgroup.kill");
  EXPECT_FALSE(has_own_group());
  EXPECT_FALSE(open_job_group(root_.path(), {}).kill);
}

}  // namespace
}  // namespace tidemark::guard
