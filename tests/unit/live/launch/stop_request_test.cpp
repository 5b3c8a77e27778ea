// SPDX-License-Identifier: Apache-2.0
#include "live/launch/stop_request.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <vector>

#include "monitor/procfs/process_handle.h"
#include "tests/support/child_process.h"

namespace tidemark::live {
namespace {

using tests::ChildProcess;

constexpr std::int64_t kEndNs = 1000;

bool is_readable(int fd, int timeout_ms) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, timeout_ms) == 1;
}

void wait_deaf(const ChildProcess::Link& link) {
  ::signal(SIGUSR1, SIG_IGN);
  link.signal_ready();
  link.wait_for_order();
}

TEST(StopRequest, IsOverWhenAllHaveEnded) {
  ChildProcess first(wait_deaf);
  ChildProcess second(wait_deaf);
  ASSERT_TRUE(first.wait_ready() && second.wait_ready());
  const std::vector<ProcessKey> both{*monitor::process_key_of("/proc", first.pid()),
                                     *monitor::process_key_of("/proc", second.pid())};

  StopRequest request(both, SIGTERM, kEndNs);
  first.wait_until_zombie();
  EXPECT_TRUE(is_readable(request.fd(), 10'000));
  second.wait_until_zombie();

  EXPECT_TRUE(request.is_over(0));
  EXPECT_EQ(request.fd(), -1);
  EXPECT_EQ(WTERMSIG(first.wait()), SIGTERM);
  EXPECT_EQ(WTERMSIG(second.wait()), SIGTERM);
}

TEST(StopRequest, IsOverWhenTheTimeIs) {
  const ChildProcess deaf(wait_deaf);
  ASSERT_TRUE(deaf.wait_ready());

  StopRequest request(std::vector{*monitor::process_key_of("/proc", deaf.pid())}, SIGUSR1, kEndNs);

  EXPECT_FALSE(request.is_over(kEndNs - 1));
  EXPECT_FALSE(is_readable(request.fd(), 0));
  EXPECT_TRUE(request.is_over(kEndNs));
}

TEST(StopRequest, DoesNotWaitForSomebodyElseWithTheSamePid) {
  const ChildProcess other(wait_deaf);
  ASSERT_TRUE(other.wait_ready());
  ProcessKey key = *monitor::process_key_of("/proc", other.pid());
  --key.start_ticks;

  StopRequest request(std::vector{key}, SIGTERM, kEndNs);

  EXPECT_TRUE(request.is_over(0));
  EXPECT_TRUE(monitor::process_key_of("/proc", other.pid())) << "it got nothing";
}

}  // namespace
}  // namespace tidemark::live
