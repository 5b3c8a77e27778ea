// SPDX-License-Identifier: Apache-2.0
#include "monitor/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/units.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_proc.h"
#include "tests/support/temp_tree.h"
#include "tracker/run/run_verdict.h"
#include "tracker/run/track_builder.h"

namespace tidemark::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using tests::FakeProcess;

constexpr std::uint64_t kKibPerMib = 1024;

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    set_physical_mib(1024);
    machine.write("proc/vmstat", "oom_kill 3\n");
    put_trainer(100);
    options.sampler.roots.keys = {{10, 100}};
    options.sampler.proc_root = proc.root();
    options.sampler.shm_root = shm.path();
    options.sampler.pss = PssMode::kOff;
    options.start_ns = clock.now_ns;
    options.machine_root = machine.path();
  }

  void start() {
    auto started = Session::start(options, proc.source(), clock);
    ASSERT_TRUE(started);
    session = *std::move(started);
  }
  Tick look(double after_s = 1.0) {
    clock.advance_s(after_s);
    return session->sample(clock.now_ns, {});
  }
  void put_trainer(std::uint64_t mib) {
    FakeProcess trainer;
    trainer.pid = 10;
    trainer.anon_kib = mib * kKibPerMib;
    proc.put(trainer);
  }
  void set_physical_mib(std::uint64_t mib) {
    machine.write("proc/meminfo", fmt::format("MemTotal: {} kB\n", mib * kKibPerMib));
  }
  // A control group of the trainer.
  void set_group_limit_mib(std::uint64_t mib) {
    machine.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    machine.write("proc/10/cgroup", "0::/job\n");
    machine.write("sys/fs/cgroup/job/memory.max", fmt::format("{}\n", mib * kMiB));
  }
  static std::vector<std::string> events(const Tick& tick, EventKind kind) {
    std::vector<std::string> details;
    for (const EventRecord& event : tick.events) {
      if (event.kind == kind) {
        details.push_back(event.detail);
      }
    }
    return details;
  }

  tests::FakeClock clock;
  tests::FakeProc proc;
  tests::TempTree shm;      // in the place of /dev/shm
  tests::TempTree machine;  // in the place of / for limits and the machine's memory
  SessionOptions options;
  std::unique_ptr<Session> session;
};

TEST_F(SessionTest, TellsOfATimeWithoutSamples) {
  start();
  look();  // gives the sample of the start, a second ago

  EXPECT_THAT(events(look(1.9), EventKind::kGap), IsEmpty());
  EXPECT_THAT(events(look(5.0), EventKind::kGap), ElementsAre("no sample for 5.0 s"));
  EXPECT_THAT(events(look(), EventKind::kGap), IsEmpty());
}

TEST_F(SessionTest, TellsOfProcessesThatTheKernelKilled) {
  start();
  EXPECT_THAT(events(look(), EventKind::kOomKill), IsEmpty()) << "those before are not of this run";

  machine.write("proc/vmstat", "oom_kill 5\n");
  const Tick tick = look();

  EXPECT_THAT(events(tick, EventKind::kOomKill),
              ElementsAre("the kernel's OOM killer ended 2 processes somewhere on this machine"));
  EXPECT_THAT(events(look(), EventKind::kOomKill), IsEmpty());
}

TEST_F(SessionTest, WarnsOfFivePercentOfTheLimitInAMinute) {
  start();

  look();
  put_trainer(150);
  EXPECT_THAT(events(look(), EventKind::kWarnGrowth), IsEmpty());
  put_trainer(152);
  EXPECT_THAT(events(look(), EventKind::kWarnGrowth),
              ElementsAre("the tree grew by 52.0 MiB within 3.0 s"));
}

TEST_F(SessionTest, DoesNotWarnUnlessAsked) {
  options.warn = false;
  start();

  look();
  put_trainer(1000);

  EXPECT_THAT(events(look(), EventKind::kWarnGrowth), IsEmpty());
}

TEST_F(SessionTest, LooksTheLimitUpAgainAndWarnsByTheNewOne) {
  start();
  look();
  EXPECT_EQ(session->limit().bytes, kGiB);

  set_group_limit_mib(200);
  look();
  EXPECT_EQ(session->limit().bytes, kGiB) << "not at every look";
  look(30.0);
  put_trainer(111);
  const Tick tick = look();

  EXPECT_EQ(session->limit().bytes, 200 * kMiB);
  EXPECT_EQ(session->limit().source, "cgroup v2 memory.max of /job");
  EXPECT_EQ(events(tick, EventKind::kWarnGrowth).size(), 1U) << "11 MiB, of which 10 are allowed";
}

TEST_F(SessionTest, TheLimitOfAWholeMachineIsItsMemory) {
  set_group_limit_mib(200);
  options.sampler.roots.keys.clear();
  options.sampler.roots.everything = true;
  start();
  ASSERT_NE(session->sampler().trainer(), nullptr);

  look();
  look(31.0);

  EXPECT_EQ(session->limit().bytes, kGiB);
  EXPECT_EQ(session->limit().source, "physical memory");
  EXPECT_EQ(session->describe().limit_bytes, kGiB);
}

class AgeOfTheJob : public SessionTest {
 protected:
  // What a job that was `age_s` old when we came and leaks 1 MiB/s is called after a quarter of an
  // hour. `first_step`: of one marked every second; nullopt: no steps.
  tracker::Verdict verdict_on_leak(double age_s, std::optional<std::int64_t> first_step = {}) {
    clock.booted_ns = clock.now_ns - static_cast<std::int64_t>((age_s + 1.0) * kNsPerSecond);
    start();
    tracker::TrackBuilder builder;
    EXPECT_TRUE(builder.begin(session->describe()));
    for (std::uint64_t i = 0; i < 180; ++i) {
      put_trainer(1000 + 5 * i);
      clock.advance_s(5.0);
      std::vector<MarkerRecord> steps;
      for (std::int64_t k = 0; first_step && k < 5; ++k) {
        const auto step = static_cast<std::int64_t>(5 * i) + k;
        steps.push_back({static_cast<double>(step), {}, MarkerKind::kStep, *first_step + step, {}});
      }
      EXPECT_TRUE(builder.add(session->sample(clock.now_ns, std::move(steps))));
    }
    tracker::Options unlimited;
    unlimited.limit_bytes = 1e15;  // of no concern here: a job that fills its machine has no time
    return judge_run(builder.take(), unlimited, {})->verdict;
  }
};

TEST_F(AgeOfTheJob, IsOverOfTheWarmupAllowance) {
  EXPECT_EQ(verdict_on_leak(8 * 3600), tracker::Verdict::kLeak);
  EXPECT_EQ(verdict_on_leak(0), tracker::Verdict::kGrowing);
}

TEST_F(AgeOfTheJob, CountsAsItsStepsBefore) {
  EXPECT_EQ(verdict_on_leak(8 * 3600, 12'000), tracker::Verdict::kLeak);
  EXPECT_EQ(verdict_on_leak(8 * 3600, 1), tracker::Verdict::kGrowing) << "it trains since now";
  EXPECT_EQ(verdict_on_leak(60, 12'000), tracker::Verdict::kGrowing) << "it was resumed";
}

}  // namespace
}  // namespace tidemark::monitor
