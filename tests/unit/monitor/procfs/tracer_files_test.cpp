// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/tracer_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

constexpr std::uint64_t kFileBytes = 64 << 10;

class TracerFilesTest : public testing::Test {
 protected:
  void write(const std::string& name, std::size_t bytes = kFileBytes) const {
    dir.write("shm/tidemark-7/" + name, std::string(bytes, 'x'));
  }
  std::uint64_t bytes_of(pid_t pid) const {
    TracerFiles files(dir.path("shm"), 7);
    files.read();
    return files.bytes_of(pid);
  }
  tests::TempTree dir;
};

TEST_F(TracerFilesTest, AreFoundByThePidInTheirNames) {
  write("trace-abc/4711-1000.trace");
  write("markers-12");  // not in a folder

  EXPECT_GE(bytes_of(4711), kFileBytes);
  EXPECT_EQ(bytes_of(12), 0U);
}

TEST_F(TracerFilesTest, CountOnlyTheOneOfTheProgramThatRunsNow) {
  write("trace-abc/4711-1000.trace", 10 * kFileBytes);
  write("trace-abc/4711-2000.trace");

  EXPECT_LT(bytes_of(4711), 2 * kFileBytes);
}

TEST_F(TracerFilesTest, CountWhatIsAllocated) {
  write("trace-abc/4711-1000.trace");
  ASSERT_EQ(::truncate(dir.path("shm/tidemark-7/trace-abc/4711-1000.trace").c_str(), 1 << 30), 0);

  EXPECT_LT(bytes_of(4711), 2 * kFileBytes);
}

TEST_F(TracerFilesTest, AreNotAnythingElse) {
  write("trace-abc/4711-1000.trace.new");
  write("trace-abc/x-1000.trace");
  write("trace-abc/4712.trace");
  dir.make_directory("shm/tidemark-7/trace-abc/4713-5.trace");

  EXPECT_EQ(bytes_of(4711), 0U);
  EXPECT_EQ(bytes_of(4712), 0U);
  EXPECT_EQ(bytes_of(4713), 0U);
}

TEST_F(TracerFilesTest, AreNoneWhereNobodyIsTraced) { EXPECT_EQ(bytes_of(::getpid()), 0U); }

}  // namespace
}  // namespace tidemark::monitor
