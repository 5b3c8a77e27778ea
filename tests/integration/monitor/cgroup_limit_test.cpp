// SPDX-License-Identifier: Apache-2.0
// A real control group with a limit, below the one that the test runs in.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "common/units.h"
#include "monitor/procfs/limits.h"
#include "monitor/procfs/system_sample.h"
#include "tests/support/child_process.h"

namespace tidemark::monitor {
namespace {

using tests::ChildProcess;

constexpr std::uint64_t kLimitBytes = 48 * kMiB;

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.close();
  return out.good();
}

class ControlGroup : public testing::Test {
 protected:
  void SetUp() override {
    const EffectiveLimit own = effective_limit("", ::getpid());
    if (own.process_cgroup_directory.empty()) {
      GTEST_SKIP() << "no control group for memory is visible here";
    }
    v2_ = own.cgroup_v2;
    directory_ = own.process_cgroup_directory + "/tidemark-test-" + std::to_string(::getpid());
    if (::mkdir(directory_.c_str(), 0755) != 0) {
      directory_.clear();
      GTEST_SKIP() << "may not create a control group: " << std::strerror(errno);
    }
    const std::string limit = std::to_string(kLimitBytes);
    if (!write_file(directory_ + (v2_ ? "/memory.max" : "/memory.limit_in_bytes"), limit)) {
      GTEST_SKIP() << "the group has no memory controller";
    }
    // Without this a machine with swap would swap the victim out instead of killing it.
    write_file(directory_ + (v2_ ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"),
               v2_ ? "0" : limit);
  }

  void TearDown() override {
    while (!directory_.empty() && ::rmdir(directory_.c_str()) != 0 && errno == EBUSY) {
      std::this_thread::yield();  // the kernel lets go of the dead process a moment later
    }
  }

  bool move_here(pid_t pid) {
    return write_file(directory_ + "/cgroup.procs", std::to_string(pid));
  }

  std::string directory_;
  bool v2_ = false;
};

void eat(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(memory, 1, bytes);
}

TEST_F(ControlGroup, LimitUsageAndOomKillAreSeen) {
  ChildProcess child([](const ChildProcess::Link& link) {
    link.wait_for_order();
    eat(20 * kMiB);
    link.signal_ready();
    link.wait_for_order();
    eat(2 * kLimitBytes);
  });
  if (!move_here(child.pid())) {
    GTEST_SKIP() << "may not move a process into a control group";
  }

  const EffectiveLimit limit = effective_limit("", child.pid());
  EXPECT_EQ(limit.bytes, kLimitBytes);
  EXPECT_EQ(limit.cgroup_directory, directory_);
  EXPECT_EQ(limit.source.find(v2_ ? "cgroup v2 memory.max of " : "cgroup v1 "), 0U);

  SystemReader reader("", child.pid());
  child.give_order();
  ASSERT_TRUE(child.wait_ready());
  const SystemSample sample = reader.sample();
  ASSERT_TRUE(sample.cgroup_used_bytes);
  // The kernel collects these counters per CPU: up to some MiB late.
  EXPECT_GE(*sample.cgroup_used_bytes, 16 * kMiB);
  EXPECT_LE(*sample.cgroup_used_bytes, kLimitBytes);
  EXPECT_EQ(sample.cgroup_limit_bytes, kLimitBytes);
  EXPECT_EQ(reader.new_oom_kills().count, 0U);

  child.give_order();
  const int status = child.wait();
  const OomKills kills = reader.new_oom_kills();

  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(kills.count, 1U);
  EXPECT_FALSE(kills.whole_machine);
}

TEST(ResourceLimit, OfAnotherProcessIsSeen) {
  ChildProcess child([](const ChildProcess::Link& link) {
    const rlimit limit{kLimitBytes, kLimitBytes};
    ::setrlimit(RLIMIT_DATA, &limit);
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(child.wait_ready());

  const EffectiveLimit limit = effective_limit("", child.pid());

  EXPECT_EQ(limit.bytes, kLimitBytes);
  EXPECT_EQ(limit.source, "RLIMIT_DATA");
}

TEST(SystemReaderOnThisMachine, AgreesWithAnIndependentReadingOfMeminfo) {
  SystemReader reader("", ::getpid());
  std::ifstream in("/proc/meminfo");
  std::string key;
  std::uint64_t total_kib = 0;
  in >> key >> total_kib;

  const SystemSample sample = reader.sample();

  EXPECT_EQ(sample.total_bytes, total_kib * 1024);
  ASSERT_TRUE(sample.available_bytes);
  EXPECT_GT(*sample.available_bytes, 0U);
  EXPECT_LE(*reader.limit().bytes, total_kib * 1024);
}

}  // namespace
}  // namespace tidemark::monitor
