// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_system_call.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <functional>

#include <gtest/gtest.h>

#include "common/clock.h"
#include "tests/support/child_process.h"

namespace tidemark::inject {
namespace {

using tests::ChildProcess;

void wait_for_orders(const ChildProcess::Link& link) {
  while (true) {
    link.signal_ready();
    link.wait_for_order();
  }
}

// What the call returns in the only thread of a process. `before`: when that stands still.
Result<std::int64_t> call_in(
    pid_t pid, SystemCall call, const std::function<void()>& before = [] {}) {
  Result<std::int64_t> result = std::int64_t{0};
  const auto work = [&]() -> Result<std::int64_t> {
    TIDEMARK_TRY_ASSIGN(const auto memory, RemoteMemory::open(pid));
    TIDEMARK_TRY_ASSIGN(const auto mappings, read_mappings(pid));
    call.instruction = find_system_call(mappings, memory);
    EXPECT_TRUE(is_system_call(call.instruction, memory));
    TIDEMARK_TRY_ASSIGN(auto thread, TracedThread::seize(pid));
    TIDEMARK_TRY(thread.stop(Deadline::in(kNsPerSecond)));
    EXPECT_EQ(why_no_system_call(thread), "");
    before();
    return make_system_call(thread, call, Deadline::in(kNsPerSecond));
  };
  in_tracing_thread(pid, [&] { result = work(); });
  return result;
}

TEST(RemoteSystemCall, ReturnsWhatTheKernelDoes) {
  ChildProcess child(wait_for_orders);
  ASSERT_TRUE(child.wait_ready());

  const auto pid = call_in(child.pid(), {0, SYS_getpid, {}});
  const auto parent = call_in(child.pid(), {0, SYS_getppid, {}});
  const auto refused = call_in(child.pid(), {0, SYS_close, {~0U}});

  ASSERT_TRUE(pid && parent && refused);
  EXPECT_EQ(*pid, child.pid());
  EXPECT_EQ(*parent, ::getpid());
  EXPECT_EQ(*refused, -EBADF);
  child.give_order();
  EXPECT_TRUE(child.wait_ready());
}

// The pipe to a process whose code gets its end; the process waits in it, and exits with what the
// code returns.
int status_after_calls(const std::function<int(int input)>& code) {
  constexpr int kTimes = 20;
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    ::_exit(code(ends[0]));
  }
  ::close(ends[0]);
  while (!waits_in_system_call(child, child)) {
  }
  for (int i = 0; i < kTimes; ++i) {
    const auto pid = call_in(child, {0, SYS_getpid, {}});
    EXPECT_TRUE(pid && *pid == child);
  }
  ::close(ends[1]);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(RemoteSystemCall, LetsTheCallGoOnThatTheThreadWasIn) {
  EXPECT_EQ(status_after_calls([](int input) {
              char byte = 0;
              return ::read(input, &byte, 1) == 0 ? 0 : 1;
            }),
            0);
}

TEST(RemoteSystemCall, HidesThatACallWasInterruptedWhichIsNeverMadeAgain) {
  EXPECT_EQ(status_after_calls([](int input) {
              const int descriptor = ::epoll_create1(EPOLL_CLOEXEC);
              epoll_event event = {};
              ::epoll_ctl(descriptor, EPOLL_CTL_ADD, input, &event);
              constexpr int kForEver = -1;
              return ::epoll_wait(descriptor, &event, 1, kForEver) == 1 ? 0 : 1;
            }),
            0);
}

// It is not begun anew, nor cut short.
TEST(RemoteSystemCall, LeavesTheRestOfASleep) {
  constexpr std::int64_t kSleepNs = 200'000'000;
  EXPECT_EQ(status_after_calls([](int /*input*/) {
              const timespec nap = {0, kSleepNs};
              const std::int64_t begun_ns = SystemClock().monotonic_ns();
              const int result = ::nanosleep(&nap, nullptr);
              const std::int64_t took_ns = SystemClock().monotonic_ns() - begun_ns;
              return result == 0 && took_ns >= kSleepNs ? 0 : 1;
            }),
            0);
}

TEST(RemoteSystemCall, HoldsSignalsBackUntilItIsOver) {
  constexpr int kSignals = 50;
  ChildProcess child([](const ChildProcess::Link& link) {
    static volatile sig_atomic_t count = 0;
    ::signal(SIGRTMIN, [](int /*signal*/) { count = count + 1; });
    link.signal_ready();
    while (count < kSignals) {
      ::usleep(1000);
    }
    wait_for_orders(link);
  });
  ASSERT_TRUE(child.wait_ready());

  const auto pid = call_in(child.pid(), {0, SYS_getpid, {}}, [&] {
    for (int i = 0; i < kSignals; ++i) {
      ::sigqueue(child.pid(), SIGRTMIN, {});
    }
  });

  ASSERT_TRUE(pid) << pid.error().what;
  EXPECT_EQ(*pid, child.pid());
  EXPECT_TRUE(child.wait_ready());  // all have come
}

TEST(RemoteSystemCall, SaysThatTheThreadHasExited) {
  ChildProcess child(wait_for_orders);
  ASSERT_TRUE(child.wait_ready());

  const auto none = call_in(child.pid(), {0, SYS_exit_group, {0}});

  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kGone);
}

}  // namespace
}  // namespace tidemark::inject
