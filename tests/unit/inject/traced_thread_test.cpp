// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/traced_thread.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <gtest/gtest.h>

#include "common/clock.h"
#include "tests/support/child_process.h"

namespace tidemark::inject {
namespace {

Registers in_call(std::int64_t number, std::int64_t result) {
  Registers registers = {};
  registers.rip = 1000;
  registers.orig_rax = static_cast<std::uint64_t>(number);
  registers.rax = static_cast<std::uint64_t>(result);
  return registers;
}

TEST(RegistersToResume, MakesAnInterruptedCallAgain) {
  for (const std::int64_t result : {-512, -513, -514, -516, -EINTR}) {
    const Registers resumed = registers_to_resume(in_call(232, result));

    EXPECT_EQ(resumed.rip, 998U) << result;
    EXPECT_EQ(resumed.rax, 232U) << result;
    EXPECT_EQ(static_cast<std::int64_t>(resumed.orig_rax), -1) << result;
  }
}

TEST(RegistersToResume, ClosesNoDescriptorTwice) {
  EXPECT_EQ(registers_to_resume(in_call(SYS_close, -EINTR)).rip, 1000U);
}

TEST(RegistersToResume, LeavesWhatWasNoCallOrHasReturned) {
  EXPECT_EQ(registers_to_resume(in_call(-1, -512)).rip, 1000U);
  EXPECT_EQ(registers_to_resume(in_call(0, 17)).rip, 1000U);
  EXPECT_EQ(registers_to_resume(in_call(0, 17)).rax, 17U);
}

// Waits until the other end of a pipe is closed; exits with 1 if a wait was interrupted before.
[[noreturn]] void wait_for_end(int pipe_end) {
  const int descriptor = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  ::epoll_ctl(descriptor, EPOLL_CTL_ADD, pipe_end, &event);
  int count = 0;
  while (count == 0) {
    constexpr int kWaitMs = 1000;
    count = ::epoll_wait(descriptor, &event, 1, kWaitMs);
  }
  ::_exit(count < 0 ? 1 : 0);
}

// A machine that is busy takes longer to stop a thread than we wait.
TEST(StoppedProcess, InterruptsNoCallOfAThreadThatStopsTooLate) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    wait_for_end(ends[0]);
  }
  ::close(ends[0]);

  constexpr int kTimes = 300;
  for (int i = 0; i < kTimes; ++i) {
    in_tracing_thread(child, [&] { (void)StoppedProcess::stop(child, Deadline::in(0)); });
  }

  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// When whoever traces it is killed, right before the signal is delivered.
TEST(TracedThread, LosesNoSignalWithItsTracer) {
  static volatile sig_atomic_t count = 0;
  tests::ChildProcess child([](const tests::ChildProcess::Link& link) {
    ::signal(SIGUSR1, [](int /*signal*/) { count = count + 1; });
    link.signal_ready();
    while (count == 0) {
      ::usleep(1000);
    }
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(child.wait_ready());
  tests::ChildProcess tracer([&](const tests::ChildProcess::Link& link) {
    auto thread = TracedThread::seize(child.pid());
    if (!thread || !thread->stop(Deadline::in(kNsPerSecond))) {
      ::_exit(1);
    }
    ::kill(child.pid(), SIGUSR1);
    while (true) {
      const auto stop = thread->run_to_stop(Deadline::in(kNsPerSecond));
      if (!stop || stop->cause == ThreadStop::Cause::kSignal) {
        break;
      }
    }
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(tracer.wait_ready());

  tracer.kill();
  tracer.wait();

  EXPECT_TRUE(child.wait_ready());
}

}  // namespace
}  // namespace tidemark::inject
