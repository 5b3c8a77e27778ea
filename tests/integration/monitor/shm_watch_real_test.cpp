// SPDX-License-Identifier: Apache-2.0
// The real /dev/shm, with a segment whose holder dies. Of /proc it sees the holder and this test
// only: on some machines even root may not look at every process, and then nothing is certain.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/shm_watch.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kBytes = 4U << 20U;

class NamedSegment {
 public:
  explicit NamedSegment(std::string name) : name_(std::move(name)) {
    fd_ = Fd(::shm_open(name_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    made_ = fd_ && ::posix_fallocate(fd_.get(), 0, kBytes) == 0;
  }
  ~NamedSegment() { ::shm_unlink(name_.c_str()); }
  NamedSegment(const NamedSegment&) = delete;
  NamedSegment& operator=(const NamedSegment&) = delete;

  bool made() const { return made_; }
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  std::string name_;
  Fd fd_;
  bool made_ = false;
};

class Watch {
 public:
  explicit Watch(pid_t holder) {
    for (const std::string& name :
         {std::string("stat"), fmt::to_string(::getpid()), fmt::to_string(holder)}) {
      proc_.link(name, "/proc/" + name);
    }
    ShmWatch::Options options;
    options.proc_root = proc_.path();
    watch_.emplace(options, clock_);
  }

  // The report after two more passes.
  const ShmReport& look_twice() {
    SystemSample sample;
    for (int i = 0; i < 2; ++i) {
      watch_->sample(sample, job_);
      clock_.advance_s(11.0);
    }
    return *watch_->report();
  }

 private:
  tests::TempTree proc_;
  tests::FakeClock clock_;
  std::optional<ShmWatch> watch_;
  // Segments that are named after this process; the machine may have many more.
  std::vector<ProcessKey> job_{*process_key_of("/proc", ::getpid())};
};

std::optional<ShmSegment> find_unheld(const ShmReport& report, const std::string& name) {
  for (const ShmSegment& segment : report.largest_unheld) {
    if (segment.path == name) {
      return segment;
    }
  }
  return std::nullopt;
}

TEST(ShmWatchOnThisMachine, SeesThatTheLastHolderIsGone) {
  const std::string name = fmt::format("torch_{}_1_0", ::getpid());
  NamedSegment segment(name);
  if (!segment.made()) {
    GTEST_SKIP() << "no room in /dev/shm";
  }
  tests::ChildProcess holder([&](const tests::ChildProcess::Link& link) {
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd(), 0);
    static_cast<char*>(memory)[0] = 1;
    ::close(segment.fd());
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(holder.wait_ready());
  segment.close();
  Watch watch(holder.pid());

  EXPECT_FALSE(find_unheld(watch.look_twice(), name));

  holder.kill();
  holder.wait();
  const auto unheld = find_unheld(watch.look_twice(), name);
  ASSERT_TRUE(unheld);
  EXPECT_EQ(unheld->allocated_bytes, kBytes);
  EXPECT_EQ(unheld->owner_pid, ::getpid());
  EXPECT_EQ(unheld->owner_alive, true);
}

// It sleeps before and after: what was found before does not count for long.
TEST(ShmWatchOnThisMachine, SeesThatAHolderHasLetGo) {
  const std::string name = fmt::format("torch_{}_2_0", ::getpid());
  NamedSegment segment(name);
  if (!segment.made()) {
    GTEST_SKIP() << "no room in /dev/shm";
  }
  tests::ChildProcess holder([&](const tests::ChildProcess::Link& link) {
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, segment.fd(), 0);
    ::close(segment.fd());
    link.signal_ready();
    link.wait_for_order();
    ::munmap(memory, kBytes);
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(holder.wait_ready());
  segment.close();
  Watch watch(holder.pid());
  EXPECT_FALSE(find_unheld(watch.look_twice(), name));
  EXPECT_FALSE(find_unheld(watch.look_twice(), name));

  holder.give_order();
  ASSERT_TRUE(holder.wait_ready());

  EXPECT_TRUE(find_unheld(watch.look_twice(), name));
}

TEST(ShmDirectoryOf, IsOurOwnForAProcessInTheSameNamespace) {
  EXPECT_EQ(shm_directory_of("/proc", ::getpid()), "/dev/shm");
  EXPECT_EQ(shm_directory_of("/proc", 1 << 30), "");
}

}  // namespace
}  // namespace tidemark::monitor
