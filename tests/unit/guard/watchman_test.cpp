// SPDX-License-Identifier: Apache-2.0
#include "guard/watchman.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "monitor/procfs/process_handle.h"
#include "tests/support/child_process.h"
#include "tests/support/temp_tree.h"
#include "tests/unit/tracer/no_alloc_scope.h"

namespace tidemark::guard {
namespace {

using tests::ChildProcess;
using tests::NoAllocScope;
using tests::TempTree;

constexpr std::int64_t kMib = 1LL << 20U;

// A machine with 1000 MiB, of which the test says how much is free, and a real process as trainer.
class WatchmanTest : public testing::Test {
 protected:
  WatchmanTest()
      : trainer_([](const ChildProcess::Link& link) {
          ::signal(SIGUSR1, SIG_IGN);
          link.signal_ready();
          link.wait_for_order();
        }) {
    EXPECT_TRUE(trainer_.wait_ready());
    free_mib(500);
  }

  void free_mib(std::int64_t mib) const {
    machine_.write("proc/meminfo", fmt::format("MemTotal: {:8} kB\nMemAvailable: {:8} kB\n",
                                               1000 * 1024, mib * 1024));
  }
  std::unique_ptr<Watchman> watchman(bool dry_run, int signal_number, std::int64_t grace_ns) const {
    WatchmanOptions options;
    options.settings.grace_ns = grace_ns;
    options.signal_number = signal_number;
    options.dry_run = dry_run;
    auto made = Watchman::create(options);
    return made ? *std::move(made) : nullptr;
  }
  std::unique_ptr<Watchlist> list() const {
    auto made = std::make_unique<Watchlist>();
    const auto key = monitor::process_key_of("/proc", trainer_.pid());
    made->trainers = {*key};
    made->members = {*key};
    HeadroomReader::Options options;
    options.root = machine_.path();
    made->limits = std::make_shared<HeadroomReader>(options);
    return made;
  }

  TempTree machine_;
  ChildProcess trainer_;
};

TEST_F(WatchmanTest, SendsTheSignalAndSaysSo) {
  const auto watchman = this->watchman(false, SIGTERM, kNsPerSecond);
  watchman->post(list());
  EXPECT_GE(watchman->look(), 2'000'000);
  EXPECT_FALSE(watchman->take_report());

  free_mib(40);
  watchman->look();

  const auto report = watchman->take_report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->decision.act, GuardAct::kStop);
  EXPECT_EQ(report->decision.reason, GuardReason::kHeadroom);
  EXPECT_EQ(report->signalled, 1U);
  EXPECT_EQ(report->trainers[0], trainer_.pid());
  const int status = trainer_.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_FALSE(watchman->take_report());
}

TEST_F(WatchmanTest, KillsWhoIgnoresTheSignal) {
  const auto watchman = this->watchman(false, SIGUSR1, 0);
  watchman->post(list());
  free_mib(40);
  watchman->look();
  watchman->look();

  EXPECT_EQ(watchman->take_report()->decision.act, GuardAct::kStop);
  const auto report = watchman->take_report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->decision.act, GuardAct::kKill);
  EXPECT_EQ(report->decision.reason, GuardReason::kGraceOver);
  EXPECT_EQ(report->kill.killed, 1U);
  const int status = trainer_.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_F(WatchmanTest, TheLeakOfATrainerThatHasEndedStopsNobody) {
  const auto leaking = [&] {
    auto made = list();
    made->leak = LeakRate{100.0 * kMib, 100.0 * kMib};
    return made;
  };
  const auto dry = watchman(true, SIGTERM, kNsPerSecond);
  dry->post(leaking());
  dry->look();
  EXPECT_EQ(dry->take_report()->decision.reason, GuardReason::kForecast) << "while it runs";
  const auto watchman = this->watchman(false, SIGTERM, kNsPerSecond);
  watchman->post(leaking());
  ::kill(trainer_.pid(), SIGKILL);
  trainer_.wait_until_zombie();

  watchman->look();

  EXPECT_FALSE(watchman->take_report());
}

TEST_F(WatchmanTest, StandsDownWhenTheTrainerHasEndedAndMemoryIsFreeAgain) {
  const auto watchman = this->watchman(false, SIGTERM, 60 * kNsPerSecond);
  watchman->post(list());
  free_mib(40);
  watchman->look();
  trainer_.wait_until_zombie();
  free_mib(600);
  watchman->look();

  EXPECT_EQ(watchman->take_report()->decision.act, GuardAct::kStop);
  EXPECT_EQ(watchman->take_report()->decision.act, GuardAct::kStandDown);
}

TEST_F(WatchmanTest, ATrainerThatIsRecognisedLateGetsTheSignalToo) {
  const auto watchman = this->watchman(false, SIGTERM, 60 * kNsPerSecond);
  ChildProcess wrapper([](const ChildProcess::Link& link) {
    ::signal(SIGTERM, SIG_IGN);
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(wrapper.wait_ready());
  auto early = list();
  early->trainers = {*monitor::process_key_of("/proc", wrapper.pid())};
  watchman->post(std::move(early));
  free_mib(40);
  watchman->look();
  watchman->look();
  EXPECT_EQ(watchman->take_report()->trainers[0], wrapper.pid());
  EXPECT_FALSE(watchman->take_report());

  watchman->post(list());
  watchman->look();
  watchman->look();

  const auto report = watchman->take_report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->decision.act, GuardAct::kStop);
  EXPECT_EQ(report->trainers[0], trainer_.pid());
  EXPECT_EQ(report->signalled, 1U);
  EXPECT_FALSE(watchman->take_report()) << "each gets it once";
  const int status = trainer_.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST_F(WatchmanTest, InADryRunNobodyIsTouched) {
  const auto watchman = this->watchman(true, SIGKILL, 0);
  watchman->post(list());
  free_mib(1);
  for (int i = 0; i < 4; ++i) {
    watchman->look();
  }

  EXPECT_EQ(watchman->take_report()->decision.act, GuardAct::kStop);
  EXPECT_EQ(watchman->take_report()->decision.act, GuardAct::kKill);
  EXPECT_FALSE(watchman->take_report());
  trainer_.give_order();
  EXPECT_EQ(trainer_.wait(), 0);
}

TEST_F(WatchmanTest, ADryRunTellsOfTheNextIncidentToo) {
  WatchmanOptions options;
  options.settings.grace_ns = 0;
  options.settings.rehearse_again_ns = 0;
  options.signal_number = SIGKILL;
  options.dry_run = true;
  const auto watchman = Watchman::create(options);
  ASSERT_TRUE(watchman);
  (*watchman)->post(list());
  for (int incident = 0; incident < 3; ++incident) {
    free_mib(1);
    for (int i = 0; i < 4; ++i) {
      (*watchman)->look();
    }
    const auto stop = (*watchman)->take_report();
    ASSERT_TRUE(stop) << incident;
    EXPECT_EQ(stop->decision.act, GuardAct::kStop);
    EXPECT_EQ(stop->signalled, 1U);
    EXPECT_EQ(stop->trainers[0], trainer_.pid());
    const auto kill = (*watchman)->take_report();
    ASSERT_TRUE(kill) << incident;
    EXPECT_EQ(kill->decision.act, GuardAct::kKill);

    free_mib(500);
    (*watchman)->look();
    EXPECT_FALSE((*watchman)->take_report()) << incident;
  }
  trainer_.give_order();
  EXPECT_EQ(trainer_.wait(), 0);
}

TEST_F(WatchmanTest, ActsByItselfOnItsThread) {
  const auto watchman = this->watchman(false, SIGTERM, kNsPerSecond);
  ASSERT_TRUE(watchman->start());
  watchman->post(list());
  free_mib(40);

  pollfd news{watchman->news_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&news, 1, 10'000), 1);
  EXPECT_EQ(watchman->take_report()->decision.act, GuardAct::kStop);
  trainer_.wait();
  EXPECT_GT(watchman->glance().at_ns, 0);
  watchman->stop();
}

TEST_F(WatchmanTest, ThePathThatSignalsAndKillsAllocatesNothing) {
  if (!NoAllocScope::works()) {
    GTEST_SKIP() << "a sanitizer has its own malloc";
  }
  const auto watchman = this->watchman(false, SIGUSR1, 0);
  watchman->post(list());
  free_mib(40);

  const NoAllocScope scope;
  watchman->look();  // takes the list, sends the signal
  watchman->look();  // kills
  const std::size_t calls = scope.calls();

  EXPECT_EQ(calls, 0U);
  EXPECT_EQ(watchman->take_report()->decision.act, GuardAct::kStop);
  EXPECT_EQ(watchman->take_report()->kill.killed, 1U);
}

TEST_F(WatchmanTest, TakesTheLatestListAndGivesTheOldOneBack) {
  const auto watchman = this->watchman(false, SIGUSR1, kNsPerSecond);
  auto first = list();
  const std::weak_ptr<HeadroomReader> first_limits = first->limits;
  watchman->post(std::move(first));
  watchman->look();
  watchman->post(list());
  watchman->look();
  EXPECT_FALSE(first_limits.expired()) << "its memory is not freed by the thread that acts";

  watchman->post(list());

  EXPECT_TRUE(first_limits.expired());
}

TEST(Watchman, WithoutAListItWaits) {
  auto watchman = Watchman::create({});
  ASSERT_TRUE(watchman);
  EXPECT_EQ((*watchman)->look(), 500'000'000);
  EXPECT_FALSE((*watchman)->take_report());
}

}  // namespace
}  // namespace tidemark::guard
