// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/frozen_copy.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fd.h"
#include "common/io.h"
#include "profiler/inject/remote_memory.h"
#include "tests/support/child_process.h"

namespace tidemark::heap {
namespace {

using testing::HasSubstr;
using tests::ChildProcess;

// In the memory of all children.
volatile int g_value = 1;

int value_in(pid_t pid) {
  const auto memory = inject::RemoteMemory::open(pid);
  return memory ? memory->load<int>(reinterpret_cast<std::uint64_t>(&g_value)).value_or(-1) : -2;
}

// Changes its value at each order.
void change_value(const ChildProcess::Link& link) {
  while (true) {
    link.signal_ready();
    link.wait_for_order();
    g_value = g_value + 1;
  }
}

// A line of its status: "SigBlk", "State"; empty: there is no such process.
std::string status_line(pid_t pid, const std::string& key) {
  const auto text = read_file(fmt::format("/proc/{}/status", pid));
  const std::size_t at = text ? text->find("\n" + key + ":") : std::string::npos;
  return at == std::string::npos ? "" : text->substr(at + 1, text->find('\n', at + 1) - at - 1);
}

std::string children_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/task/{}/children", pid, pid));
  return text ? *text : "?";
}

// Until something is so, at most for seconds.
template <typename Condition>
bool comes_true(Condition condition) {
  constexpr int kTimes = 5000;
  for (int i = 0; i < kTimes && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

TEST(FrozenCopy, KeepsTheMemoryAsItWas) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());

  auto copy = FrozenCopy::take(child.pid());
  ASSERT_TRUE(copy) << copy.error().what;
  child.give_order();
  ASSERT_TRUE(child.wait_ready());

  EXPECT_EQ(value_in(copy->pid()), 1);
  EXPECT_EQ(value_in(child.pid()), 2);
  const Status there = copy->check();
  EXPECT_TRUE(there) << there.error().what;
  EXPECT_GT(copy->cost().page_table_bytes, 0U);
  EXPECT_GT(copy->cost().copied_bytes.value_or(0), 0U);
  EXPECT_TRUE(copy->release());
  EXPECT_GT(copy->paused_s(), 0);
  EXPECT_LT(copy->paused_s(), 1);
}

TEST(FrozenCopy, LeavesNothingBehind) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  const std::string blocked = status_line(child.pid(), "SigBlk");

  auto copy = FrozenCopy::take(child.pid());
  ASSERT_TRUE(copy) << copy.error().what;
  const pid_t pid = copy->pid();
  EXPECT_EQ(children_of(child.pid()), fmt::format("{} ", pid));
  EXPECT_EQ(status_line(child.pid(), "TracerPid"), "TracerPid:\t0");
  ASSERT_TRUE(copy->release());

  EXPECT_EQ(children_of(child.pid()), "");
  EXPECT_EQ(status_line(pid, "State"), "");
  EXPECT_EQ(status_line(child.pid(), "SigBlk"), blocked);
  EXPECT_EQ(status_line(child.pid(), "TracerPid"), "TracerPid:\t0");
  EXPECT_FALSE(copy->check());
  EXPECT_TRUE(copy->release());  // there is nothing more to do
}

TEST(FrozenCopy, IsReleasedAtItsEnd) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  { ASSERT_TRUE(FrozenCopy::take(child.pid())); }

  EXPECT_EQ(children_of(child.pid()), "");
}

TEST(FrozenCopy, IsTheFirstToGoWhenMemoryGetsShort) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  const auto copy = FrozenCopy::take(child.pid());
  ASSERT_TRUE(copy) << copy.error().what;

  const auto own = read_file(fmt::format("/proc/{}/oom_score_adj", child.pid()));
  const auto copied = read_file(fmt::format("/proc/{}/oom_score_adj", copy->pid()));

  ASSERT_TRUE(own && copied);
  EXPECT_NE(*own, "1000\n");
  EXPECT_EQ(*copied, "1000\n");
}

TEST(FrozenCopy, HoldsNoFilesOpen) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  std::string path = "/tmp/tidemark-test-lock-XXXXXX";
  Fd lock(::mkostemp(path.data(), O_CLOEXEC));
  ASSERT_TRUE(lock);
  ChildProcess child([&](const ChildProcess::Link& link) {
    const Fd own = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ::flock(own.get(), LOCK_EX);
    link.signal_ready();
    link.wait_for_order();
    ::close(own.get());
    writer.reset();
    link.signal_ready();
    link.wait_for_order();
  });
  writer.reset();
  ASSERT_TRUE(child.wait_ready());
  const auto copy = FrozenCopy::take(child.pid());
  ASSERT_TRUE(copy) << copy.error().what;
  EXPECT_NE(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);

  child.give_order();
  ASSERT_TRUE(child.wait_ready());

  EXPECT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  pollfd ended = {reader.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 1000), 1);
  ::unlink(path.c_str());
}

TEST(FrozenCopy, LeavesAStoppedProcessStopped) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  const auto is_stopped = [&] {
    return status_line(child.pid(), "State").find("T (stopped)") != std::string::npos;
  };
  ASSERT_TRUE(comes_true(is_stopped));

  auto copy = FrozenCopy::take(child.pid());
  ASSERT_TRUE(copy) << copy.error().what;
  EXPECT_EQ(value_in(copy->pid()), 1);
  EXPECT_TRUE(comes_true(is_stopped));
  EXPECT_TRUE(copy->release());
  EXPECT_TRUE(comes_true(is_stopped));
  child.give_order();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(value_in(child.pid()), 1);
  ::kill(child.pid(), SIGCONT);

  EXPECT_TRUE(child.wait_ready());
  EXPECT_EQ(value_in(child.pid()), 2);
}

TEST(FrozenCopy, LeavesSignalHandlingAsItIs) {
  ChildProcess child([](const ChildProcess::Link& link) {
    ::signal(SIGTRAP, SIG_IGN);
    ::signal(SIGCHLD, [](int /*signal*/) { g_value = 100; });
    change_value(link);
  });
  ASSERT_TRUE(child.wait_ready());
  const std::string ignored = status_line(child.pid(), "SigIgn");

  auto copy = FrozenCopy::take(child.pid());
  ASSERT_TRUE(copy) << copy.error().what;
  ASSERT_TRUE(copy->release());

  EXPECT_EQ(status_line(child.pid(), "SigIgn"), ignored);
  child.give_order();
  ASSERT_TRUE(child.wait_ready());
  EXPECT_EQ(value_in(child.pid()), 2);  // it was not told of a child
}

TEST(FrozenCopy, OutlivesItsProcess) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  auto copy = FrozenCopy::take(child.pid());
  ASSERT_TRUE(copy) << copy.error().what;

  child.kill();
  child.wait();

  EXPECT_EQ(value_in(copy->pid()), 1);
  EXPECT_TRUE(copy->release());
}

TEST(FrozenCopy, SaysThatItWasKilled) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  auto copy = FrozenCopy::take(child.pid());
  ASSERT_TRUE(copy) << copy.error().what;
  const auto memory = inject::RemoteMemory::open(copy->pid());
  ASSERT_TRUE(memory);

  ::kill(copy->pid(), SIGKILL);

  ASSERT_TRUE(comes_true([&] { return !copy->check(); }));
  EXPECT_EQ(copy->check().error().code, Errc::kGone);
  EXPECT_FALSE(memory->load<int>(reinterpret_cast<std::uint64_t>(&g_value)));
  EXPECT_TRUE(copy->release());
  EXPECT_EQ(children_of(child.pid()), "");
}

TEST(FrozenCopy, IsNotTakenOfWhatIsNotThere) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  child.kill();
  child.wait_until_zombie();
  EXPECT_EQ(FrozenCopy::take(child.pid()).error().code, Errc::kGone);
  child.wait();

  EXPECT_EQ(FrozenCopy::take(child.pid()).error().code, Errc::kNotFound);
  EXPECT_EQ(FrozenCopy::take(::getpid()).error().code, Errc::kUsage);
}

TEST(FrozenCopy, LetsAProcessEndThatEndsMeanwhile) {
  for (int i = 0; i < 20; ++i) {
    ChildProcess child([&](const ChildProcess::Link& link) {
      link.signal_ready();
      ::usleep(static_cast<useconds_t>(i * 50));
    });
    ASSERT_TRUE(child.wait_ready());

    auto copy = FrozenCopy::take(child.pid());

    EXPECT_TRUE(copy || copy.error().code == Errc::kGone || copy.error().code == Errc::kNotFound)
        << copy.error().what;
    EXPECT_TRUE(!copy || copy->release());
  }
}

// Ends the process at the first clone().
bool forbid_children() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {static_cast<unsigned short>(std::size(rules)), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(FrozenCopy, IsRefusedWhereAFilterMayEndTheProcess) {
  ChildProcess child([](const ChildProcess::Link& link) {
    if (forbid_children()) {
      change_value(link);
    }
  });
  if (!child.wait_ready()) {
    GTEST_SKIP() << "may not filter system calls here";
  }

  const auto copy = FrozenCopy::take(child.pid());

  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code, Errc::kUnsupported);
  EXPECT_THAT(copy.error().what, HasSubstr("seccomp"));
  child.give_order();
  EXPECT_TRUE(child.wait_ready());
}

TEST(FrozenCopy, IsRefusedWhereAnotherTraces) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  ChildProcess tracer([&](const ChildProcess::Link& link) {
    if (::ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) == 0) {
      link.signal_ready();
      link.wait_for_order();
    }
  });
  ASSERT_TRUE(tracer.wait_ready());

  const auto copy = FrozenCopy::take(child.pid());

  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code, Errc::kPermission);
  EXPECT_THAT(copy.error().what, HasSubstr(fmt::format("by process {}", tracer.pid())));
}

TEST(FrozenCopy, IsRefusedWhereTheUserMayHaveNoMoreProcesses) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "may not become another user here";
  }
  ChildProcess child([](const ChildProcess::Link& link) {
    constexpr uid_t kNobodyElse = 54321;
    const rlimit one = {1, 1};
    if (::setrlimit(RLIMIT_NPROC, &one) == 0 && ::setuid(kNobodyElse) == 0) {
      change_value(link);
    }
  });
  if (!child.wait_ready()) {
    GTEST_SKIP() << "may not become another user here";
  }

  const auto copy = FrozenCopy::take(child.pid());

  ASSERT_FALSE(copy);
  EXPECT_THAT(copy.error().what, HasSubstr("RLIMIT_NPROC"));
  child.give_order();
  EXPECT_TRUE(child.wait_ready());
}

TEST(FrozenCopy, IsTakenOnceNoCallIsLeftThatCannotBeInterrupted) {
  ChildProcess child([](const ChildProcess::Link& link) {
    link.signal_ready();
    const pid_t inner = ::vfork();  // NOLINT: it waits until the child has exited
    if (inner == 0) {
      link.wait_for_order();
      ::_exit(0);
    }
    ::waitpid(inner, nullptr, 0);
    change_value(link);
  });
  ASSERT_TRUE(child.wait_ready());
  ASSERT_TRUE(comes_true(
      [&] { return status_line(child.pid(), "State").find("D (") != std::string::npos; }));

  FrozenLimits limits;
  limits.timeout_ns = kNsPerSecond / 20;
  limits.attempt_ns = limits.timeout_ns / 10;
  const auto none = FrozenCopy::take(child.pid(), limits);
  child.give_order();
  const auto copy = FrozenCopy::take(child.pid());

  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().what, HasSubstr("cannot be interrupted"));
  ASSERT_TRUE(copy) << copy.error().what;
  EXPECT_EQ(value_in(copy->pid()), 1);
}

// Process 1 of a namespace.
TEST(FrozenCopy, IsTakenAndRemovedInOtherPidNamespaces) {
  ChildProcess outer([](const ChildProcess::Link& link) {
    if (::unshare(CLONE_NEWPID) != 0) {
      return;
    }
    if (::fork() == 0) {
      change_value(link);
    }
    ::wait(nullptr);
  });
  if (!outer.wait_ready()) {
    GTEST_SKIP() << "may not make namespaces here";
  }
  const std::string inner = children_of(outer.pid());
  pid_t first = 0;
  std::from_chars(inner.data(), inner.data() + inner.size(), first);
  ASSERT_GT(first, 0);
  ASSERT_THAT(status_line(first, "NSpid"), testing::EndsWith("\t1"));

  auto copy = FrozenCopy::take(first);
  ASSERT_TRUE(copy) << copy.error().what;
  EXPECT_EQ(value_in(copy->pid()), 1);
  const Status released = copy->release();

  EXPECT_TRUE(released) << released.error().what;
  EXPECT_EQ(children_of(first), "");
  outer.give_order();
  EXPECT_TRUE(outer.wait_ready());
  ::kill(first, SIGKILL);
}

// A copy would be process 1 of the new one, and without that nobody can start another there.
TEST(FrozenCopy, IsRefusedWhereChildrenAreInAnotherPidNamespace) {
  ChildProcess child([](const ChildProcess::Link& link) {
    if (::unshare(CLONE_NEWPID) != 0) {
      return;
    }
    link.signal_ready();
    link.wait_for_order();
    const pid_t first = ::fork();
    if (first == 0) {
      ::_exit(0);
    }
    if (first > 0 && ::waitpid(first, nullptr, 0) == first) {
      link.signal_ready();
      link.wait_for_order();
    }
  });
  if (!child.wait_ready()) {
    GTEST_SKIP() << "may not make namespaces here";
  }

  const auto copy = FrozenCopy::take(child.pid());

  ASSERT_FALSE(copy);
  EXPECT_THAT(copy.error().what, HasSubstr("pid namespace"));
  child.give_order();
  EXPECT_TRUE(child.wait_ready());
  EXPECT_FALSE(FrozenCopy::take(child.pid()));  // the first one of that namespace has exited
}

TEST(FrozenCopy, EndsWithTheProcessThatHasTakenIt) {
  ChildProcess child(change_value);
  ASSERT_TRUE(child.wait_ready());
  ChildProcess taker([&](const ChildProcess::Link& link) {
    const auto copy = FrozenCopy::take(child.pid());
    if (copy) {
      link.signal_ready();
      link.wait_for_order();
    }
  });
  ASSERT_TRUE(taker.wait_ready());
  const std::string copies = children_of(child.pid());
  pid_t copy = 0;
  std::from_chars(copies.data(), copies.data() + copies.size(), copy);
  ASSERT_GT(copy, 0);

  taker.kill();
  taker.wait();

  EXPECT_TRUE(comes_true([&] {
    const std::string state = status_line(copy, "State");
    return state.empty() || state.find("Z (") != std::string::npos;
  }));
  child.give_order();
  EXPECT_TRUE(child.wait_ready());
  EXPECT_EQ(value_in(child.pid()), 2);
}

}  // namespace
}  // namespace tidemark::heap
