// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_system_call.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <functional>
#include <vector>

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

struct HowToCall {
  std::function<void()> before = [] {};  // when it stands still
  std::int64_t longest_ns = kNsPerSecond;
  bool has_handler_end = true;  // whether the code that ends handlers may be used
};

// What the call returns in the only thread of a process.
Result<std::int64_t> call_in(pid_t pid, SystemCall call, const HowToCall& how = {}) {
  Result<std::int64_t> result = std::int64_t{0};
  const auto work = [&]() -> Result<std::int64_t> {
    TIDEMARK_TRY_ASSIGN(const auto memory, RemoteMemory::open(pid));
    TIDEMARK_TRY_ASSIGN(const auto mappings, read_mappings(pid));
    SystemCallCode code = find_system_call_code(mappings, memory);
    code.end_handler = how.has_handler_end ? code.end_handler : 0;
    EXPECT_TRUE(is_there(code, memory));
    call.instruction = code.call;
    TIDEMARK_TRY_ASSIGN(auto thread, TracedThread::seize(pid));
    TIDEMARK_TRY(thread.stop(Deadline::in(kNsPerSecond)));
    TIDEMARK_TRY_ASSIGN(auto back, WayBack::prepare(thread, memory, mappings, code));
    how.before();
    return make_system_call(thread, call, back, Deadline::in(how.longest_ns));
  };
  in_tracing_thread(pid, [&] { result = work(); });
  return result;
}

void call_once(pid_t pid) {
  const auto result = call_in(pid, {0, SYS_getpid, {}});
  EXPECT_TRUE(result && *result == pid);
}

// As if we were killed meanwhile: nobody traces it any more when the call ends.
void leave_in_call(pid_t pid, bool has_handler_end) {
  constexpr std::uint64_t kWaitMs = 10;
  HowToCall how;
  how.longest_ns = kNsPerSecond / 500;
  how.has_handler_end = has_handler_end;
  const auto result = call_in(pid, {0, SYS_poll, {0, 0, kWaitMs}}, how);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().sys_errno, ETIMEDOUT);
}

// The second time from where it is right behind a wait that was made again.
void call_and_leave_in_call(pid_t pid) {
  constexpr useconds_t kUntilItIsBack = 20'000;
  call_once(pid);
  leave_in_call(pid, true);
  ::usleep(kUntilItIsBack);
  call_once(pid);
  leave_in_call(pid, false);
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

// Calls are made in the only thread of a process whose code gets the end of a pipe and waits in it;
// it exits with what the code returns.
int status_after(const std::function<void(pid_t)>& make_calls,
                 const std::function<int(int input)>& code) {
  constexpr int kTimes = 10;
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
    make_calls(child);
  }
  ::close(ends[1]);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

int read_to_end(int input) {
  char byte = 0;
  return ::read(input, &byte, 1) == 0 ? 0 : 1;
}

int wait_for_event(int input) {
  const int descriptor = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  ::epoll_ctl(descriptor, EPOLL_CTL_ADD, input, &event);
  constexpr int kForEver = -1;
  return ::epoll_wait(descriptor, &event, 1, kForEver) == 1 ? 0 : 1;
}

int sleep_enough(int /*input*/) {
  constexpr std::int64_t kSleepNs = 200'000'000;
  const timespec nap = {0, kSleepNs};
  const std::int64_t begun_ns = SystemClock().monotonic_ns();
  const int result = ::nanosleep(&nap, nullptr);
  const std::int64_t took_ns = SystemClock().monotonic_ns() - begun_ns;
  return result == 0 && took_ns >= kSleepNs ? 0 : 1;
}

TEST(RemoteSystemCall, LetsTheCallGoOnThatTheThreadWasIn) {
  EXPECT_EQ(status_after(call_once, read_to_end), 0);
}

TEST(RemoteSystemCall, HidesThatACallWasInterruptedWhichIsNeverMadeAgain) {
  EXPECT_EQ(status_after(call_once, wait_for_event), 0);
}

// It is not begun anew, nor cut short.
TEST(RemoteSystemCall, LeavesTheRestOfASleep) {
  EXPECT_EQ(status_after(call_once, sleep_enough), 0);
}

TEST(WayBack, LeadsToTheCallThatTheThreadWasIn) {
  EXPECT_EQ(status_after(call_and_leave_in_call, read_to_end), 0);
  EXPECT_EQ(status_after(call_and_leave_in_call, wait_for_event), 0);
}

TEST(WayBack, LeadsToASleepThatWasInterruptedBefore) {
  EXPECT_EQ(status_after(call_and_leave_in_call, sleep_enough), 0);
}

TEST(WayBack, LeadsToTheSignalsAndRegistersThatTheThreadHad) {
  const int status = status_after(call_and_leave_in_call, [](int input) {
    sigset_t some = {};
    sigset_t now = {};
    ::sigaddset(&some, SIGUSR2);
    ::pthread_sigmask(SIG_SETMASK, &some, nullptr);
    const double before = 0.5 + input;
    long kept = input + 1000;
    register double vector asm("xmm9") = before;
    pollfd ended = {input, POLLIN, 0};
    long result = 0;
    asm volatile("mov $7, %%eax\n\tsyscall"  // poll
                 : "=a"(result), "+x"(vector), "+r"(kept)
                 : "D"(&ended), "S"(1L), "d"(-1L)
                 : "rcx", "r11", "memory");
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    const bool has_mask = ::sigismember(&now, SIGUSR2) == 1 && ::sigismember(&now, SIGUSR1) == 0 &&
                          ::sigismember(&now, SIGTERM) == 0;
    return result == 1 && vector == before && kept == input + 1000 && has_mask ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

// What is to be known of a process whose only thread is stopped.
template <typename Look>
void look_at_stopped(pid_t pid, const Look& look) {
  in_tracing_thread(pid, [&] {
    const auto memory = RemoteMemory::open(pid);
    const auto mappings = read_mappings(pid);
    auto thread = TracedThread::seize(pid);
    ASSERT_TRUE(memory && mappings && thread && thread->stop(Deadline::in(kNsPerSecond)));
    look(*thread, *memory, *mappings);
  });
}

TEST(WayBack, LeavesTheStackAsItWas) {
  constexpr useconds_t kUntilItWaits = 50'000;
  ChildProcess child([](const ChildProcess::Link& link) {
    link.signal_ready();
    ::pause();
  });
  ASSERT_TRUE(child.wait_ready());
  constexpr std::size_t kBytes = 16U << 10U;
  std::vector<std::vector<char>> stacks;
  ::usleep(kUntilItWaits);
  const auto add_stack = [&] {
    look_at_stopped(child.pid(), [&](const TracedThread& thread, const RemoteMemory& memory,
                                     const std::vector<Mapping>& /*mappings*/) {
      const auto registers = thread.registers();
      ASSERT_TRUE(registers && registers->orig_rax == SYS_pause);
      stacks.push_back(memory.load_array<char>(registers->rsp - kBytes, kBytes).value());
    });
  };

  add_stack();
  call_once(child.pid());
  add_stack();

  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(stacks[0], stacks[1]);
}

TEST(WayBack, IsNoneWhereTheStackHasNoRoom) {
  ChildProcess child(wait_for_orders);
  ASSERT_TRUE(child.wait_ready());
  look_at_stopped(child.pid(), [&](const TracedThread& thread, const RemoteMemory& memory,
                                   std::vector<Mapping> mappings) {
    const SystemCallCode code = find_system_call_code(mappings, memory);
    EXPECT_TRUE(WayBack::prepare(thread, memory, mappings, code));
    for (Mapping& mapping : mappings) {
      if (mapping.name == "[stack]") {
        mapping.range.begin = thread.registers()->rsp - 1024;
      }
    }

    const auto none = WayBack::prepare(thread, memory, mappings, code);

    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().what, "its stack has no room");
  });
}

TEST(WayBack, IsNoneOnAStackThatTheProgramHasMade) {
  ChildProcess child([](const ChildProcess::Link& link) {
    static const ChildProcess::Link* own = nullptr;
    static char stack[256U << 10U];
    own = &link;
    ucontext_t context = {};
    ::getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = sizeof(stack);
    ::makecontext(
        &context, [] { wait_for_orders(*own); }, 0);
    ::setcontext(&context);
  });
  ASSERT_TRUE(child.wait_ready());
  const auto none = call_in(child.pid(), {0, SYS_getpid, {}});

  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "it is not on its own stack");
}

TEST(WayBack, NeedsCodeThatIsStillThere) {
  ChildProcess child(wait_for_orders);
  ASSERT_TRUE(child.wait_ready());
  look_at_stopped(child.pid(), [&](const TracedThread& thread, const RemoteMemory& memory,
                                   const std::vector<Mapping>& mappings) {
    SystemCallCode code = find_system_call_code(mappings, memory);
    ++code.call;

    EXPECT_FALSE(is_there(code, memory));
    EXPECT_FALSE(WayBack::prepare(thread, memory, mappings, code));
  });
}

// Whatever lets a process run that the call has started, it exits.
TEST(WayBack, EndsAProcessThatIsNotToRun) {
  ChildProcess child(wait_for_orders);
  ASSERT_TRUE(child.wait_ready());
  const auto work = [&]() -> Result<std::int64_t> {
    TIDEMARK_TRY_ASSIGN(const auto memory, RemoteMemory::open(child.pid()));
    TIDEMARK_TRY_ASSIGN(const auto mappings, read_mappings(child.pid()));
    const SystemCallCode code = find_system_call_code(mappings, memory);
    TIDEMARK_TRY_ASSIGN(auto thread, TracedThread::seize(child.pid()));
    TIDEMARK_TRY(thread.stop(Deadline::in(kNsPerSecond)));
    TIDEMARK_TRY_ASSIGN(auto back, WayBack::prepare(thread, memory, mappings, code));
    const SystemCall clone = {code.call, SYS_clone, {CLONE_PARENT, back.stack_of_new_process()}};
    return make_system_call(thread, clone, back, Deadline::in(kNsPerSecond));
  };
  Result<std::int64_t> started = std::int64_t{0};
  in_tracing_thread(child.pid(), [&] { started = work(); });

  ASSERT_TRUE(started && *started > 0);
  int status = -1;
  EXPECT_EQ(::waitpid(static_cast<pid_t>(*started), &status, __WALL), *started);
  EXPECT_EQ(status, 0);
  child.give_order();
  EXPECT_TRUE(child.wait_ready());
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

  HowToCall how;
  how.before = [&] {
    for (int i = 0; i < kSignals; ++i) {
      ::sigqueue(child.pid(), SIGRTMIN, {});
    }
  };
  const auto pid = call_in(child.pid(), {0, SYS_getpid, {}}, how);

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
