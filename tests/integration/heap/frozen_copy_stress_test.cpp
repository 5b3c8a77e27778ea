// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/heap/frozen_copy.h"
#include "tests/integration/guard/limited_group.h"
#include "tests/support/paths.h"
#include "tests/support/subprocess.h"

namespace tidemark::heap {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using tests::Subprocess;
using tests::victim_path;

// The bench asks for more of them.
int number_of_copies(int usual) {
  const char* const asked = std::getenv("TIDEMARK_TEST_COPIES");
  return asked == nullptr ? usual : std::max(std::atoi(asked), 1);
}

// How many could be taken and removed.
int take_copies(pid_t pid, int times) {
  int taken = 0;
  for (int i = 0; i < times; ++i) {
    auto copy = FrozenCopy::take(pid);
    EXPECT_TRUE(copy) << copy.error().what;
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + i % 20));
    if (copy) {
      const Status released = copy->release();
      EXPECT_TRUE(released) << released.error().what;
      taken += released ? 1 : 0;
    }
  }
  return taken;
}

TEST(FrozenCopyStress, NothingChangesForABusyJob) {
  const int times = number_of_copies(60);
  Subprocess job({victim_path("busy_job")});
  ASSERT_THAT(job.read_until("ready\n"), HasSubstr("ready"));

  EXPECT_EQ(take_copies(job.pid(), times), times);

  job.close_input();
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.output(), EndsWith("done\n"));
}

// Calls that its own children interrupt are its own affair.
TEST(FrozenCopyStress, NothingChangesForAJobThatHandlesTheEndOfChildren) {
  const int times = number_of_copies(40);
  Subprocess job({victim_path("busy_job"), "handler"});
  ASSERT_THAT(job.read_until("ready\n"), HasSubstr("ready"));

  EXPECT_EQ(take_copies(job.pid(), times), times);

  job.close_input();
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.output(), EndsWith("done\n"));
}

TEST(FrozenCopyStress, NothingChangesForSubprocessesOfPython) {
  const std::string program = R"(
import subprocess, sys, threading
over = threading.Event()
odd = []
def work():
    while not over.is_set():
        got = subprocess.run(["/bin/echo", "hello"], capture_output=True)
        if got.returncode != 0 or got.stdout != b"hello\n":
            odd.append(got)
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
print("ready", flush=True)
sys.stdin.read()
over.set()
[thread.join() for thread in threads]
print(odd or "done")
)";
  const int times = number_of_copies(30);
  Subprocess job({"/usr/bin/python3", "-c", program});
  ASSERT_THAT(job.read_until("ready\n"), HasSubstr("ready"));

  EXPECT_EQ(take_copies(job.pid(), times), times);

  job.close_input();
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.output(), EndsWith("done\n"));
}

constexpr std::uint64_t kMiB = 1U << 20U;

// Writes to so many megabytes at each line of input.
std::vector<std::string> writer_of(std::uint64_t mib) {
  return {victim_path("busy_job"), "write", std::to_string(mib)};
}

TEST(FrozenCopyStress, GivesWayBeforeTheJobMeetsItsLimit) {
  const tests::LimitedGroup group(500 * kMiB);
  if (!group.usable()) {
    GTEST_SKIP() << "may not create a control group: no limit to meet";
  }
  Subprocess job(group.wrap(writer_of(300)));
  ASSERT_THAT(job.read_until("ready\n"), HasSubstr("ready"));
  auto copy = FrozenCopy::take(job.pid());
  ASSERT_TRUE(copy) << copy.error().what;

  job.send("\n");

  ASSERT_THAT(job.read_until("written\n"), HasSubstr("written"));
  EXPECT_FALSE(copy->check());
  EXPECT_TRUE(copy->release());
  job.close_input();
  EXPECT_EQ(job.wait(), 0);
}

TEST(FrozenCopyStress, IsRefusedNearTheLimit) {
  const tests::LimitedGroup group(200 * kMiB);
  if (!group.usable()) {
    GTEST_SKIP() << "may not create a control group: no limit to meet";
  }
  Subprocess job(group.wrap(writer_of(150)));
  ASSERT_THAT(job.read_until("ready\n"), HasSubstr("ready"));

  const auto copy = FrozenCopy::take(job.pid());

  ASSERT_FALSE(copy);
  EXPECT_THAT(copy.error().what, HasSubstr("no room"));
  EXPECT_THAT(copy.error().what, HasSubstr("cgroup"));
  job.close_input();
  EXPECT_EQ(job.wait(), 0);
}

}  // namespace
}  // namespace tidemark::heap
