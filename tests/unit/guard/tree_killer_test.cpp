// SPDX-License-Identifier: Apache-2.0
#include "guard/tree_killer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "common/io.h"
#include "guard/resume_helper.h"
#include "monitor/procfs/proc_files.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/process_signal.h"
#include "tests/support/child_process.h"
#include "tests/support/in_child.h"
#include "tests/support/temp_tree.h"
#include "tests/unit/tracer/no_alloc_scope.h"

namespace tidemark::guard {
namespace {

// Children that are forked have the environment of the test.
constexpr const char* kInEveryEnvironment = "PATH=";

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

void wait_in_child(const ChildProcess::Link& link) {
  link.signal_ready();
  link.wait_for_order();
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

TEST(TreeKiller, KillsAProcessWhoseMainThreadHasEndedWhileAnotherRuns) {
  const std::string said = in_child([] {
    const pid_t root = ::fork();
    if (root == 0) {
      std::thread(live).detach();
      ::syscall(SYS_exit, 0);  // of this thread alone
    }
    const Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto stat = monitor::read_stat(proc.get(), root);
    while (stat && stat->state != 'Z') {
      std::this_thread::yield();
      stat = monitor::read_stat(proc.get(), root);
    }
    auto killer = TreeKiller::open({});
    const std::vector<ProcessKey> members{key_of(root)};
    const auto running = killer->count(members);
    const auto outcome = killer->kill(members);
    int status = 0;
    ::waitpid(root, &status, 0);
    return std::to_string(running) + " running, " + std::to_string(outcome.killed) +
           " killed, ended by signal " + std::to_string(WTERMSIG(status));
  });
  EXPECT_EQ(said, "1 running, 1 killed, ended by signal 9");
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
    ::waitpid(root, nullptr, 0);
    auto by_group = TreeKiller::open({});
    const auto in_group = by_group->count(std::vector<ProcessKey>{leader});
    TreeKiller::Options options;
    options.children_of = ::getpid();
    options.launch_mark = "another launch;";
    auto of_another = TreeKiller::open(options);
    const auto strangers = of_another->kill({});
    options.launch_mark = kInEveryEnvironment;
    auto by_mark = TreeKiller::open(options);
    const auto outcome = by_mark->kill({});
    reap_all();
    return std::to_string(in_group) + " in the group, " + std::to_string(strangers.killed) +
           " of another launch, " + std::to_string(outcome.killed) + " of this one";
  });
  EXPECT_EQ(said, "1 in the group, 0 of another launch, 1 of this one");
}

// The group of a job may get other processes between the look at it and the kill.
TEST(TreeKiller, KnowsWhetherAControlGroupIsTheTreesAlone) {
  const ChildProcess member(wait_in_child);
  const ChildProcess stranger(wait_in_child);
  const std::vector<ProcessKey> members{key_of(member.pid())};
  const tests::TempTree folder;
  auto killer = TreeKiller::open({});
  const auto owns = [&](const std::string& procs) {
    folder.write("cgroup.procs", procs);
    return killer->owns_group(*open_file(folder.path("cgroup.procs"), O_RDONLY), members);
  };

  EXPECT_TRUE(owns(std::to_string(member.pid()) + "\n"));
  EXPECT_TRUE(owns(std::to_string(member.pid()) + "\n4000000\n"));  // has ended
  EXPECT_FALSE(owns(std::to_string(member.pid()) + "\n" + std::to_string(stranger.pid()) + "\n"));
  EXPECT_FALSE(owns("0\n"));  // of another namespace
  EXPECT_FALSE(owns(""));
}

// In a process of its own, which is killed when it has stopped the victim.
TEST(ResumeHelper, ResumesWhatAGuardThatWasKilledHadStopped) {
  ChildProcess victim(wait_in_child);
  ASSERT_TRUE(victim.wait_ready());
  const ProcessKey key = key_of(victim.pid());
  ChildProcess guard([&](const ChildProcess::Link& link) {
    auto helper = ResumeHelper::start();
    helper->will_stop(key);
    ::kill(key.pid, SIGSTOP);
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(guard.wait_ready());

  guard.kill();
  guard.wait();

  victim.give_order();  // it ends only if it runs
  EXPECT_EQ(victim.wait(), 0);
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
    options.launch_mark = kInEveryEnvironment;
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
    options.launch_mark = kInEveryEnvironment;
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
