// SPDX-License-Identifier: Apache-2.0
#include "guard/tree_killer.h"
#include "monitor/procfs/process_signal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "common/io.h"
#include "monitor/procfs/process_handle.h"
#include "tests/support/child_process.h"
#include "tests/support/in_child.h"
#include "tests/unit/tracer/no_alloc_scope.h"

namespace tidemark::guard {
namespace {

using tests::ChildProcess;
using tests::in_child;
using tests::NoAllocScope;

// Whatever happens, no victim of these tests lives longer.
constexpr unsigned kLongestLifeS = 20;

ProcessKey key_of(pid_t pid) {
  const auto key = monitor::process_key_of("/proc", pid);
  return key ? *key : ProcessKey{};
}

// Memory that forked processes share with the test.
template <typename T>
T* shared() {
  void* const memory =
      ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) T();
}

void reap_all() {
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

// Who was killed is there for a moment longer.
void wait_until_none(TreeKiller& killer, const std::vector<ProcessKey>& members) {
  for (int i = 0; i < 1000 && killer.count(members) > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

[[noreturn]] void live() {
  ::alarm(kLongestLifeS);
  while (true) {
    ::pause();
  }
}

TEST(SignalProcess, ReachesTheProcessThatIsMeantAndNoOther) {
  const Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ChildProcess child([](const ChildProcess::Link& link) { link.wait_for_order(); });
  const ProcessKey key = key_of(child.pid());

  EXPECT_EQ(monitor::signal_process(proc.get(), {key.pid, key.start_ticks + 1}, SIGKILL), ESRCH)
      << "another process with that pid";
  EXPECT_TRUE(monitor::is_running(proc.get(), key));
  EXPECT_EQ(monitor::signal_process(proc.get(), key, SIGKILL), 0);
  child.wait_until_zombie();
  EXPECT_FALSE(monitor::is_running(proc.get(), key));
  child.wait();
  EXPECT_EQ(monitor::signal_process(proc.get(), key, SIGKILL), ESRCH);
}

// Each in a child, so that all processes that could go wrong are below it.
TEST(TreeKiller, KillsDescendantsOfMembersAndNobodyElse) {
  const std::string said = in_child([] {
    std::atomic<int>* const ready = shared<std::atomic<int>>();
    const pid_t root = ::fork();
    if (root == 0) {
      for (int i = 0; i < 3; ++i) {
        if (::fork() == 0) {
          ++*ready;
          live();
        }
      }
      ++*ready;
      live();
    }
    const pid_t bystander = ::fork();
    if (bystander == 0) {
      ++*ready;
      live();
    }
    while (*ready < 5) {
      std::this_thread::yield();
    }
    auto killer = TreeKiller::open({});
    const std::vector<ProcessKey> members{key_of(root)};
    const auto outcome = killer->kill(members);
    int status = 0;
    ::waitpid(root, &status, 0);
    const bool spared = ::kill(bystander, 0) == 0 && ::waitpid(bystander, &status, WNOHANG) == 0;
    ::kill(bystander, SIGKILL);
    wait_until_none(*killer, members);
    return std::to_string(outcome.killed) + " killed, bystander " + (spared ? "spared" : "dead") +
           ", " + std::to_string(killer->count(members)) + " left";
  });
  EXPECT_EQ(said, "4 killed, bystander spared, 0 left");
}

TEST(TreeKiller, FindsOrphansOfAGroupThatAMemberLedAndThoseThatASubreaperGot) {
  const std::string said = in_child([] {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::atomic<int>* const ready = shared<std::atomic<int>>();
    const pid_t root = ::fork();
    if (root == 0) {
      ::setpgid(0, 0);
      if (::fork() == 0) {  // will be orphaned
        ++*ready;
        live();
      }
      while (*ready < 1) {
        std::this_thread::yield();
      }
      ::_exit(0);
    }
    const ProcessKey leader = key_of(root);
    const pid_t helper = ::fork();
    if (helper == 0) {
      if (::fork() == 0) {
        ++*ready;
        live();
      }
      ++*ready;
      live();
    }
    ::waitpid(root, nullptr, 0);
    while (*ready < 3) {
      std::this_thread::yield();
    }
    auto by_group = TreeKiller::open({});
    const auto in_group = by_group->count(std::vector<ProcessKey>{leader});
    TreeKiller::Options options;
    options.children_of = ::getpid();
    options.except = helper;
    auto by_parent = TreeKiller::open(options);
    const auto below = by_parent->count({});
    const auto outcome = by_parent->kill({});
    const bool spared = ::kill(helper, 0) == 0;
    wait_until_none(*by_parent, {});
    options.except.reset();
    auto all = TreeKiller::open(options);
    const auto helpers = all->kill({});
    reap_all();
    return std::to_string(in_group) + " in the group, " + std::to_string(below) + " below, " +
           std::to_string(outcome.killed) + " killed, helper " + (spared ? "spared" : "dead") +
           ", " + std::to_string(helpers.killed) + " at last";
  });
  EXPECT_EQ(said, "1 in the group, 1 below, 1 killed, helper spared, 2 at last");
}

TEST(TreeKiller, NeverTouchesItselfOrItsAncestors) {
  const std::string said = in_child([] {
    auto killer = TreeKiller::open({});
    const auto outcome =
        killer->kill(std::vector<ProcessKey>{key_of(::getppid()), key_of(::getpid())});
    return std::to_string(outcome.killed) + " killed";
  });
  EXPECT_EQ(said, "0 killed");
}

// Up to 120 processes that fork as fast as they can, each at most a handful of times, for at most
// some seconds: fast enough to be missed by a single walk, and bounded by itself.
TEST(TreeKiller, EndsATreeThatForksMeanwhile) {
  const std::string said = in_child([] {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::atomic<int>* const born = shared<std::atomic<int>>();
    const pid_t root = ::fork();
    if (root == 0) {
      ::alarm(kLongestLifeS);
      while (true) {
        if (*born < 120 && ::fork() == 0) {
          ::alarm(kLongestLifeS);
          ++*born;
        }
        ::signal(SIGCHLD, SIG_IGN);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    }
    while (*born < 20) {
      std::this_thread::yield();
    }
    TreeKiller::Options options;
    options.children_of = ::getpid();
    auto killer = TreeKiller::open(options);
    const auto outcome = killer->kill({});
    reap_all();
    const auto left = killer->count({});
    return std::to_string(left) + " left" + (outcome.killed >= 20 ? "" : ", few were killed");
  });
  EXPECT_EQ(said, "0 left");
}

TEST(TreeKiller, GoesOnInRoundsWhereThereIsNotRoomForAll) {
  const std::string said = in_child([] {
    std::atomic<int>* const ready = shared<std::atomic<int>>();
    for (int i = 0; i < 40; ++i) {
      if (::fork() == 0) {
        ++*ready;
        live();
      }
    }
    while (*ready < 40) {
      std::this_thread::yield();
    }
    TreeKiller::Options options;
    options.children_of = ::getpid();
    options.most_processes = 1U << 12U;
    auto killer = TreeKiller::open(options);
    const auto outcome = killer->kill({});
    reap_all();
    return std::to_string(outcome.killed);
  });
  EXPECT_EQ(said, "40");
}

TEST(TreeKiller, AllocatesNothing) {
  if (!NoAllocScope::works()) {
    GTEST_SKIP() << "a sanitizer has its own malloc";
  }
  const std::string said = in_child([] {
    const pid_t root = ::fork();
    if (root == 0) {
      live();
    }
    auto killer = TreeKiller::open({});
    const std::vector<ProcessKey> members{key_of(root), {4'000'000, 1}};
    const NoAllocScope scope;
    const auto outcome = killer->kill(members);
    const std::size_t calls = scope.calls();
    reap_all();
    return std::to_string(outcome.killed) + " killed, " + std::to_string(calls) + " allocations";
  });
  EXPECT_EQ(said, "1 killed, 0 allocations");
}

}  // namespace
}  // namespace tidemark::guard
