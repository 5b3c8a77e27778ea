// SPDX-License-Identifier: Apache-2.0
// The sampler on real forked trees.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/clock.h"
#include "common/units.h"
#include "monitor/procfs/process_handle.h"
#include "monitor/procfs/process_source.h"
#include "monitor/sampler.h"
#include "tests/support/child_process.h"

namespace tidemark::monitor {
namespace {

using tests::ChildProcess;
using namespace std::chrono_literals;

// Touches every page, so that it is really there.
char* hold(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    ::_exit(1);
  }
  std::memset(memory, 1, bytes);
  return static_cast<char*>(memory);
}

// Of what outlives its parent: it must not outlive a test that was ended.
constexpr unsigned kLongestTestS = 120;

[[noreturn]] void sleep_for_ever() {
  while (true) {
    ::pause();
  }
}

// Ends with its parent, whatever happens to the test.
pid_t fork_child() {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(0);  // it ended before we could ask for the signal
    }
  }
  return pid;
}

class RealTree : public testing::Test {
 protected:
  void watch(pid_t pid, PssMode pss = PssMode::kAuto) {
    auto made = make_procps_source();
    ASSERT_TRUE(made);
    source = *std::move(made);
    SamplerOptions options;
    options.roots.keys = {*process_key_of("/proc", pid)};
    options.pss = pss;
    auto started = Sampler::start(options, *source, clock);
    ASSERT_TRUE(started);
    sampler = *std::move(started);
  }
  Tick sample() { return sampler->sample(to_seconds(clock.monotonic_ns())); }
  // Samples until `done` says so; false after ten seconds.
  template <typename Done>
  bool sample_until(const Done& done) {
    for (int i = 0; i < 500; ++i) {
      if (done(sample())) {
        return true;
      }
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }

  SystemClock clock;
  std::unique_ptr<ProcessSource> source;
  std::unique_ptr<Sampler> sampler;
};

bool has_event(const Tick& tick, EventKind kind) {
  return std::any_of(tick.events.begin(), tick.events.end(),
                     [&](const EventRecord& event) { return event.kind == kind; });
}

TEST_F(RealTree, FourWorkersForkedFromALargeParentAndKilledLeaveTheFootprintWhereItWas) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    hold(400 * kMiB);
    link.signal_ready();
    link.wait_for_order();
    std::vector<pid_t> workers;
    for (int i = 0; i < 4; ++i) {
      if (const pid_t pid = fork_child(); pid == 0) {
        sleep_for_ever();
      } else {
        workers.push_back(pid);
      }
    }
    link.signal_ready();
    link.wait_for_order();
    for (const pid_t pid : workers) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    link.signal_ready();
    sleep_for_ever();
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());
  const auto expect_400 = [&](const Tick& tick) {
    EXPECT_NEAR(static_cast<double>(*tick.tree.footprint_bytes) / kMiB, 400.0, 20.0)
        << tick.tree.processes << " processes, held: " << tick.tree.footprint_held;
  };
  expect_400(sample());

  parent.give_order();
  EXPECT_TRUE(sample_until([&](const Tick& tick) {
    expect_400(tick);
    return tick.tree.processes == 5;
  }));
  ASSERT_TRUE(parent.wait_ready());
  for (int i = 0; i < 25; ++i) {
    expect_400(sample());
    std::this_thread::sleep_for(20ms);
  }

  parent.give_order();
  EXPECT_TRUE(sample_until([&](const Tick& tick) {
    expect_400(tick);
    return tick.tree.processes == 1;
  }));
  ASSERT_TRUE(parent.wait_ready());
  for (int i = 0; i < 25; ++i) {
    expect_400(sample());
    std::this_thread::sleep_for(20ms);
  }
}

TEST_F(RealTree, CopyOnWriteGrowthShowsInTheFootprintWhileRssIsFlat) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    char* memory = hold(200 * kMiB);
    int order[2];
    if (::pipe(order) != 0) {
      ::_exit(1);
    }
    if (fork_child() == 0) {
      char byte = 0;
      if (::read(order[0], &byte, 1) == 1) {
        std::memset(memory, 2, 200 * kMiB);
      }
      sleep_for_ever();
    }
    link.signal_ready();
    link.wait_for_order();
    [[maybe_unused]] const auto written = ::write(order[1], "x", 1);
    sleep_for_ever();
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid(), PssMode::kAlways);
  const Tick before = sample();
  ASSERT_NEAR(static_cast<double>(*before.tree.footprint_bytes) / kMiB, 200.0, 10.0);

  parent.give_order();

  EXPECT_TRUE(sample_until([&](const Tick& tick) {
    EXPECT_NEAR(static_cast<double>(tick.tree.rss_bytes),
                static_cast<double>(before.tree.rss_bytes), 4.0 * kMiB);
    return tick.tree.footprint_bytes > 390 * kMiB;
  }));
}

TEST_F(RealTree, AgreesWithAnIndependentReadingOfProc) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    hold(30 * kMiB);
    for (int i = 0; i < 20; ++i) {
      if (fork_child() == 0) {
        hold(static_cast<std::size_t>(i + 1) * kMiB);
        sleep_for_ever();
      }
    }
    link.signal_ready();
    sleep_for_ever();
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());
  ASSERT_TRUE(sample_until([](const Tick& tick) {
    return tick.tree.processes == 21 && tick.tree.rss_bytes > (21 * 30 + 210) * kMiB;
  }));

  const Tick tick = sample();
  std::uint64_t rss_kib = 0;
  for (const ProcessSample& process : tick.processes) {
    std::ifstream status("/proc/" + std::to_string(process.key.pid) + "/status");
    for (std::string word; status >> word;) {
      if (word == "VmRSS:") {
        std::uint64_t kib = 0;
        status >> kib;
        rss_kib += kib;
      }
    }
  }

  EXPECT_NEAR(static_cast<double>(tick.tree.rss_bytes), static_cast<double>(rss_kib) * 1024.0,
              0.01 * static_cast<double>(tick.tree.rss_bytes));
}

TEST_F(RealTree, AForkStormNeverDentsTheSum) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    hold(100 * kMiB);
    link.signal_ready();
    while (true) {
      for (int i = 0; i < 8; ++i) {
        if (fork_child() == 0) {
          ::_exit(0);
        }
      }
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());

  std::uint64_t births = 0;
  for (int i = 0; i < 100; ++i) {
    const Tick tick = sample();
    births += static_cast<std::uint64_t>(
        std::count_if(tick.events.begin(), tick.events.end(),
                      [](const EventRecord& event) { return event.kind == EventKind::kSpawn; }));
    ASSERT_NEAR(static_cast<double>(*tick.tree.footprint_bytes) / kMiB, 100.0, 10.0)
        << "tick " << i << " with " << tick.tree.processes << " processes";
  }
  EXPECT_GT(births, 0U) << "or there was no storm";
}

TEST_F(RealTree, AnOrphanStaysInTheTree) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    const pid_t middle = fork_child();
    if (middle == 0) {
      if (::fork() == 0) {  // outlives its parent, killed below
        ::alarm(kLongestTestS);
        hold(5 * kMiB);
        sleep_for_ever();
      }
      sleep_for_ever();
    }
    link.signal_ready();
    link.wait_for_order();
    ::kill(middle, SIGKILL);
    ::waitpid(middle, nullptr, 0);
    sleep_for_ever();
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());
  ASSERT_TRUE(sample_until([](const Tick& tick) { return tick.tree.processes == 3; }));
  const pid_t orphan = sample().processes.back().key.pid;

  parent.give_order();

  EXPECT_TRUE(sample_until([](const Tick& tick) { return tick.tree.processes == 2; }));
  EXPECT_EQ(sample().processes.back().key.pid, orphan);
  ::kill(orphan, SIGKILL);  // nobody else would
}

TEST_F(RealTree, AGrandchildOfAShortLivedChildIsAdopted) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    ::setpgid(0, 0);
    link.signal_ready();
    link.wait_for_order();
    if (const pid_t middle = fork_child(); middle == 0) {
      if (::fork() == 0) {  // outlives its parent, killed below
        ::alarm(kLongestTestS);
        sleep_for_ever();
      }
      ::_exit(0);
    } else {
      ::waitpid(middle, nullptr, 0);
    }
    link.signal_ready();
    sleep_for_ever();
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());
  sample();

  parent.give_order();
  ASSERT_TRUE(parent.wait_ready());

  EXPECT_TRUE(sample_until([](const Tick& tick) { return tick.tree.processes == 2; }));
  ::kill(sample().processes.back().key.pid, SIGKILL);
}

TEST_F(RealTree, ExecIsSeen) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    hold(50 * kMiB);
    int order[2];
    if (::pipe(order) != 0) {
      ::_exit(1);
    }
    if (fork_child() == 0) {
      char byte = 0;
      [[maybe_unused]] const auto n = ::read(order[0], &byte, 1);
      ::execl("/bin/sleep", "sleep", "60", nullptr);
      ::_exit(1);
    }
    link.signal_ready();
    link.wait_for_order();
    [[maybe_unused]] const auto written = ::write(order[1], "x", 1);
    sleep_for_ever();
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());
  ASSERT_TRUE(sample_until([](const Tick& tick) { return tick.tree.processes == 2; }));

  parent.give_order();

  EXPECT_TRUE(sample_until([](const Tick& tick) { return has_event(tick, EventKind::kExec); }));
  EXPECT_EQ(sampler->find(sample().processes.back().key)->argv, "sleep 60");
}

TEST_F(RealTree, AThreadsChildIsFoundAndThreadsAreNoProcesses) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 5; ++i) {
      threads.emplace_back([] { sleep_for_ever(); });
    }
    std::thread forker([&] {
      link.wait_for_order();
      if (fork_child() == 0) {
        sleep_for_ever();
      }
      link.signal_ready();
      sleep_for_ever();
    });
    link.signal_ready();
    sleep_for_ever();
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());
  ASSERT_EQ(sample().tree.processes, 1U);

  parent.give_order();
  ASSERT_TRUE(parent.wait_ready());

  EXPECT_TRUE(sample_until([](const Tick& tick) { return tick.tree.processes == 2; }));
  EXPECT_EQ(sample().tree.processes, 2U);
}

TEST_F(RealTree, AProcessWhoseMainThreadHasEndedStillHoldsItsMemory) {
  const ChildProcess parent([](const ChildProcess::Link& link) {
    hold(50 * kMiB);
    std::thread([&] {
      std::this_thread::sleep_for(100ms);  // until the main thread has ended
      link.signal_ready();
      sleep_for_ever();
    }).detach();
    ::syscall(SYS_exit, 0);  // of this thread alone
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());

  const Tick tick = sample();

  EXPECT_GT(tick.tree.rss_bytes, 50 * kMiB);
  EXPECT_GT(*tick.tree.footprint_bytes, 50 * kMiB);
  EXPECT_FALSE(sampler->finished());
}

// Spawned workers that map one segment: no family, and yet the pages exist once.
TEST_F(RealTree, ASegmentThatExecdProcessesMapExistsOnce) {
  const std::string victim = TIDEMARK_BINARY_DIR "/tests/programs/segment_mapper";
  const ChildProcess parent([&](const ChildProcess::Link& link) {
    const int fd = ::memfd_create("segment", 0);
    if (::ftruncate(fd, 200 * kMiB) != 0) {
      ::_exit(1);
    }
    void* segment = ::mmap(nullptr, 200 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    std::memset(segment, 1, 200 * kMiB);
    link.signal_ready();
    link.wait_for_order();
    std::vector<pid_t> workers;
    for (int i = 0; i < 4; ++i) {
      if (const pid_t pid = fork_child(); pid == 0) {
        ::execl(victim.c_str(), "segment_mapper", std::to_string(fd).c_str(), nullptr);
        ::_exit(1);
      } else {
        workers.push_back(pid);
      }
    }
    link.wait_for_order();
    for (const pid_t pid : workers) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    sleep_for_ever();
  });
  ASSERT_TRUE(parent.wait_ready());
  watch(parent.pid());
  const auto expect_200 = [&](const Tick& tick) {
    EXPECT_NEAR(static_cast<double>(*tick.tree.footprint_bytes) / kMiB, 200.0, 20.0)
        << tick.tree.processes << " processes, held: " << tick.tree.footprint_held;
  };
  expect_200(sample());

  parent.give_order();
  EXPECT_TRUE(sample_until([&](const Tick& tick) {
    expect_200(tick);
    return tick.tree.rss_bytes > 5 * 200 * kMiB;
  }));
  for (int i = 0; i < 20; ++i) {
    expect_200(sample());
    std::this_thread::sleep_for(20ms);
  }
  parent.give_order();
  EXPECT_TRUE(sample_until([&](const Tick& tick) {
    expect_200(tick);
    return tick.tree.processes == 1;
  }));
  expect_200(sample());
}

}  // namespace
}  // namespace tidemark::monitor
