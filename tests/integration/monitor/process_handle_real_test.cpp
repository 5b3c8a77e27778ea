// SPDX-License-Identifier: Apache-2.0
// ProcessHandle on living processes, against an independent and naive reading of the same facts.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/units.h"
#include "monitor/procfs/process_handle.h"
#include "tests/support/child_process.h"

namespace tidemark::monitor {
namespace {

using testing::UnorderedElementsAreArray;
using tests::ChildProcess;

// Sums of all "Key:  n kB" lines, in bytes.
std::map<std::string, std::uint64_t> naive_sums(pid_t pid, const char* file) {
  std::ifstream in("/proc/" + std::to_string(pid) + '/' + file);
  std::map<std::string, std::uint64_t> sums;
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kib = 0;
    std::string unit;
    if (words >> key >> kib >> unit && unit == "kB") {
      sums[key] += kib * 1024;
    }
  }
  return sums;
}

std::vector<pid_t> naive_children(pid_t parent) {
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "status");
    std::string key;
    pid_t pid = 0;
    while (in >> key) {
      if (key == "Pid:") {
        in >> pid;
      } else if (key == "PPid:") {
        pid_t ppid = 0;
        in >> ppid;
        if (ppid == parent) {
          pids.push_back(pid);
        }
        break;
      }
    }
  }
  return pids;
}

char* mapped(std::size_t bytes, int flags) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    ::_exit(9);
  }
  std::memset(memory, 1, bytes);
  return static_cast<char*>(memory);
}

void hold_memory(const ChildProcess::Link& link) {
  mapped(24 * kMiB, MAP_PRIVATE);
  mapped(8 * kMiB, MAP_SHARED);
  link.signal_ready();
  link.wait_for_order();
}

ProcessHandle handle_of(pid_t pid) {
  const auto key = process_key_of("/proc", pid);
  EXPECT_TRUE(key) << key.error().what;
  auto handle = ProcessHandle::open("/proc", *key);
  EXPECT_TRUE(handle) << handle.error().what;
  return std::move(*handle);
}

// During an exec the new name comes first, then the arguments.
void wait_for_exec_of_sleep(const ProcessHandle& handle) {
  const std::vector<std::string> expected{"sleep", "1000"};
  while (true) {
    const auto argv = handle.argv();
    ASSERT_TRUE(argv);
    if (*argv == expected) {
      return;
    }
    std::this_thread::yield();
  }
}

TEST(ProcessHandleOnLiveProcesses, SumsOfATreeAgreeWithAnIndependentReading) {
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int i = 0; i < 5; ++i) {
    children.push_back(std::make_unique<ChildProcess>(hold_memory));
    ASSERT_TRUE(children.back()->wait_ready());
  }
  std::uint64_t rss = 0;
  std::uint64_t naive_rss = 0;
  std::uint64_t footprint = 0;
  std::uint64_t naive_footprint = 0;

  for (const auto& child : children) {
    ProcessHandle handle = handle_of(child->pid());
    const auto status = handle.status();
    const auto pss = handle.pss();
    ASSERT_TRUE(status && pss);
    rss += *status->rss_bytes;
    footprint += pss->footprint_bytes();
    auto naive = naive_sums(child->pid(), "status");
    naive_rss += naive["VmRSS:"];
    EXPECT_EQ(*status->rss_anon_bytes, naive["RssAnon:"]);
    EXPECT_EQ(*status->rss_shmem_bytes, naive["RssShmem:"]);
    EXPECT_EQ(*status->hwm_bytes, naive["VmHWM:"]);
    EXPECT_EQ(status->ppid, ::getpid());
    EXPECT_EQ(status->uid, ::geteuid());
    auto rollup = naive_sums(child->pid(), "smaps_rollup");
    naive_footprint += rollup["Pss_Anon:"] + rollup["Pss_Shmem:"] + rollup["SwapPss:"];
  }

  EXPECT_EQ(rss, naive_rss);
  // Pages that this test shares with its children move while it works.
  EXPECT_NEAR(static_cast<double>(footprint), static_cast<double>(naive_footprint), 64.0 * 1024);
  EXPECT_GE(footprint, 5 * 32 * kMiB);
}

TEST(ProcessHandleOnLiveProcesses, TheSplitDerivedFromSmapsAgreesWithTheKernels) {
  ChildProcess child(hold_memory);
  ASSERT_TRUE(child.wait_ready());
  ProcessHandle handle = handle_of(child.pid());
  const auto rollup = handle.pss();
  ASSERT_TRUE(rollup);
  if (rollup->split_estimated) {
    GTEST_SKIP() << "this kernel's smaps_rollup has no Pss_Anon to compare with";
  }
  std::ifstream in("/proc/" + std::to_string(child.pid()) + "/smaps");
  std::ostringstream text;
  text << in.rdbuf();

  SmapsAccumulator sums;
  sums.add(text.str());
  const auto derived = sums.finish();

  ASSERT_TRUE(derived);
  const double slack = 256.0 * 1024;  // rounding of every mapping to KiB, and a few mixed ones
  EXPECT_NEAR(static_cast<double>(derived->pss_bytes), static_cast<double>(rollup->pss_bytes),
              slack);
  EXPECT_NEAR(static_cast<double>(derived->pss_anon_bytes),
              static_cast<double>(rollup->pss_anon_bytes), slack);
  EXPECT_NEAR(static_cast<double>(derived->pss_shmem_bytes),
              static_cast<double>(rollup->pss_shmem_bytes), slack);
  EXPECT_GE(derived->pss_shmem_bytes, 8 * kMiB);
}

TEST(ProcessHandleOnLiveProcesses, FindsTheChildrenOfEveryThread) {
  ChildProcess parent([](const ChildProcess::Link& link) {
    const auto fork_sleeper = [] {
      if (::fork() == 0) {
        ::alarm(120);  // outlives its parent, and must not outlive a test that was ended
        ::pause();
        ::_exit(0);
      }
    };
    ::setpgid(0, 0);
    fork_sleeper();
    std::thread forker([&] {
      fork_sleeper();
      fork_sleeper();
      link.signal_ready();
      ::pause();
    });
    forker.join();
  });
  ASSERT_TRUE(parent.wait_ready());
  const ProcessHandle handle = handle_of(parent.pid());

  const auto all = handle.children();
  const auto of_main_thread = handle.children(1);

  ASSERT_TRUE(all && of_main_thread);
  EXPECT_THAT(*all, UnorderedElementsAreArray(naive_children(parent.pid())));
  EXPECT_EQ(all->size(), 3U);
  EXPECT_EQ(of_main_thread->size(), 1U);
  for (const pid_t pid : *all) {
    ::kill(pid, SIGKILL);
  }
}

TEST(ProcessHandleOnLiveProcesses, FollowsAnExec) {
  ChildProcess child([](const ChildProcess::Link& link) {
    mapped(64 * kMiB, MAP_PRIVATE);
    link.signal_ready();
    link.wait_for_order();
    ::execl("/bin/sleep", "sleep", "1000", nullptr);
  });
  ASSERT_TRUE(child.wait_ready());
  ProcessHandle handle = handle_of(child.pid());
  const auto before = handle.pss();
  ASSERT_TRUE(before);
  ASSERT_GE(before->pss_anon_bytes, 64 * kMiB);
  const auto statm_before = handle.statm();
  ASSERT_TRUE(statm_before);

  child.give_order();
  wait_for_exec_of_sleep(handle);
  const auto after = handle.pss();
  const auto status = handle.status();

  ASSERT_TRUE(after && status);
  EXPECT_LT(after->pss_anon_bytes, 8 * kMiB);
  EXPECT_EQ(status->comm, "sleep");
  const auto statm_after = handle.statm();
  ASSERT_TRUE(statm_after);
  EXPECT_LT(statm_after->resident_pages, statm_before->resident_pages);
}

TEST(ProcessHandleOnLiveProcesses, AZombieHasAStateAndNoMemory) {
  ChildProcess child(hold_memory);
  ASSERT_TRUE(child.wait_ready());
  ProcessHandle handle = handle_of(child.pid());

  child.kill();
  child.wait_until_zombie();
  const auto status = handle.status();
  const auto statm = handle.statm();
  const auto pss = handle.pss();
  const auto argv = handle.argv();

  ASSERT_TRUE(statm);
  EXPECT_EQ(*statm, StatmFields());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, 'Z');
  EXPECT_EQ(status->rss_bytes, std::nullopt);
  ASSERT_FALSE(pss);
  EXPECT_EQ(pss.error().code, Errc::kGone);
  ASSERT_TRUE(argv);
  EXPECT_TRUE(argv->empty());
}

TEST(ProcessHandleOnLiveProcesses, EveryReadOfAReapedProcessSaysGone) {
  ChildProcess child(hold_memory);
  ASSERT_TRUE(child.wait_ready());
  ProcessHandle handle = handle_of(child.pid());
  ASSERT_TRUE(handle.statm()) << "its descriptor is kept from now on";

  child.kill();
  child.wait();

  EXPECT_EQ(handle.statm().error().code, Errc::kGone);
  EXPECT_EQ(handle.status().error().code, Errc::kGone);
  EXPECT_EQ(handle.pss().error().code, Errc::kGone);
  EXPECT_EQ(handle.argv().error().code, Errc::kGone);
  EXPECT_EQ(handle.exe().error().code, Errc::kGone);
  EXPECT_EQ(handle.children().error().code, Errc::kGone);
  EXPECT_EQ(handle.children(1).error().code, Errc::kGone);
  EXPECT_EQ(handle.environment({}).error().code, Errc::kGone);
  EXPECT_EQ(process_key_of("/proc", child.pid()).error().code, Errc::kGone);
}

TEST(ProcessHandleOnLiveProcesses, ReadsWhoAndWhereItIs) {
  ::setenv("TIDEMARK_TEST_RANK", "3", 1);
  ChildProcess child(
      [](const ChildProcess::Link&) { ::execl("/bin/sleep", "sleep", "1000", nullptr); });
  ::unsetenv("TIDEMARK_TEST_RANK");
  const ProcessHandle handle = handle_of(child.pid());
  wait_for_exec_of_sleep(handle);

  const auto exe = handle.exe();
  const auto environment = handle.environment(std::vector<std::string>{"TIDEMARK_TEST_RANK"});

  ASSERT_TRUE(exe && environment);
  EXPECT_EQ(*exe, std::filesystem::canonical("/bin/sleep").string());
  EXPECT_EQ(*environment, std::vector<std::string>{"TIDEMARK_TEST_RANK=3"});
}

TEST(ProcessHandleOnLiveProcesses, KeepsANameOfAnyBytes) {
  const std::string name = "a) S\n\\ (\t\xff";
  ChildProcess child([&](const ChildProcess::Link& link) {
    std::ofstream("/proc/self/comm") << name;
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(child.wait_ready());

  const auto status = handle_of(child.pid()).status();

  ASSERT_TRUE(status);
  EXPECT_EQ(status->comm, name);
}

}  // namespace
}  // namespace tidemark::monitor
