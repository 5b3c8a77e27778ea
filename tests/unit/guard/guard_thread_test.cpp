// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_thread.h"

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
class GuardThreadTest : public testing::Test {
 protected:
  GuardThreadTest()
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
  std::unique_ptr<GuardThread> guard_thread(bool dry_run, int signal_number,
                                            std::int64_t grace_ns) const {
    GuardThreadOptions options;
    options.settings.grace_ns = grace_ns;
    options.signal_number = signal_number;
    options.dry_run = dry_run;
    auto made = GuardThread::create(options);
    return made ? *std::move(made) : nullptr;
  }
  std::unique_ptr<GuardTargets> list() const {
    auto made = std::make_unique<GuardTargets>();
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

TEST_F(GuardThreadTest, SendsTheSignalAndSaysSo) {
  const auto guard_thread = this->guard_thread(false, SIGTERM, kNsPerSecond);
  guard_thread->post(list());
  EXPECT_GE(guard_thread->look(), 2'000'000);
  EXPECT_FALSE(guard_thread->take_report());

  free_mib(40);
  guard_thread->look();

  const auto report = guard_thread->take_report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->decision.act, GuardAct::kStop);
  EXPECT_EQ(report->decision.reason, GuardReason::kHeadroom);
  EXPECT_EQ(report->signalled, 1U);
  EXPECT_EQ(report->trainers[0], trainer_.pid());
  const int status = trainer_.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_FALSE(guard_thread->take_report());
}

TEST_F(GuardThreadTest, KillsWhoIgnoresTheSignal) {
  const auto guard_thread = this->guard_thread(false, SIGUSR1, 0);
  guard_thread->post(list());
  free_mib(40);
  guard_thread->look();
  guard_thread->look();

  EXPECT_EQ(guard_thread->take_report()->decision.act, GuardAct::kStop);
  const auto report = guard_thread->take_report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->decision.act, GuardAct::kKill);
  EXPECT_EQ(report->decision.reason, GuardReason::kGraceOver);
  EXPECT_EQ(report->kill.killed, 1U);
  const int status = trainer_.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_F(GuardThreadTest, TheLeakOfATrainerThatHasEndedStopsNobody) {
  const auto leaking = [&] {
    auto made = list();
    made->leak = LeakRate{100.0 * kMib, 100.0 * kMib};
    return made;
  };
  const auto dry = guard_thread(true, SIGTERM, kNsPerSecond);
  dry->post(leaking());
  dry->look();
  EXPECT_EQ(dry->take_report()->decision.reason, GuardReason::kForecast) << "while it runs";
  const auto guard_thread = this->guard_thread(false, SIGTERM, kNsPerSecond);
  guard_thread->post(leaking());
  ::kill(trainer_.pid(), SIGKILL);
  trainer_.wait_until_zombie();

  guard_thread->look();

  EXPECT_FALSE(guard_thread->take_report());
}

TEST_F(GuardThreadTest, StandsDownWhenTheTrainerHasEndedAndMemoryIsFreeAgain) {
  const auto guard_thread = this->guard_thread(false, SIGTERM, 60 * kNsPerSecond);
  guard_thread->post(list());
  free_mib(40);
  guard_thread->look();
  trainer_.wait_until_zombie();
  free_mib(600);
  guard_thread->look();

  EXPECT_EQ(guard_thread->take_report()->decision.act, GuardAct::kStop);
  EXPECT_EQ(guard_thread->take_report()->decision.act, GuardAct::kStandDown);
}

TEST_F(GuardThreadTest, ATrainerThatIsRecognisedLateGetsTheSignalToo) {
  const auto guard_thread = this->guard_thread(false, SIGTERM, 60 * kNsPerSecond);
  ChildProcess wrapper([](const ChildProcess::Link& link) {
    ::signal(SIGTERM, SIG_IGN);
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(wrapper.wait_ready());
  auto early = list();
  early->trainers = {*monitor::process_key_of("/proc", wrapper.pid())};
  guard_thread->post(std::move(early));
  free_mib(40);
  guard_thread->look();
  guard_thread->look();
  EXPECT_EQ(guard_thread->take_report()->trainers[0], wrapper.pid());
  EXPECT_FALSE(guard_thread->take_report());

  guard_thread->post(list());
  guard_thread->look();
  guard_thread->look();

  const auto report = guard_thread->take_report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->decision.act, GuardAct::kStop);
  EXPECT_EQ(report->trainers[0], trainer_.pid());
  EXPECT_EQ(report->signalled, 1U);
  EXPECT_FALSE(guard_thread->take_report()) << "each gets it once";
  const int status = trainer_.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST_F(GuardThreadTest, InADryRunNobodyIsTouched) {
  const auto guard_thread = this->guard_thread(true, SIGKILL, 0);
  guard_thread->post(list());
  free_mib(1);
  for (int i = 0; i < 4; ++i) {
    guard_thread->look();
  }

  EXPECT_EQ(guard_thread->take_report()->decision.act, GuardAct::kStop);
  EXPECT_EQ(guard_thread->take_report()->decision.act, GuardAct::kKill);
  EXPECT_FALSE(guard_thread->take_report());
  trainer_.give_order();
  EXPECT_EQ(trainer_.wait(), 0);
}

TEST_F(GuardThreadTest, ADryRunTellsOfTheNextIncidentToo) {
  GuardThreadOptions options;
  options.settings.grace_ns = 0;
  options.settings.rehearse_again_ns = 0;
  options.signal_number = SIGKILL;
  options.dry_run = true;
  const auto guard_thread = GuardThread::create(options);
  ASSERT_TRUE(guard_thread);
  (*guard_thread)->post(list());
  for (int incident = 0; incident < 3; ++incident) {
    free_mib(1);
    for (int i = 0; i < 4; ++i) {
      (*guard_thread)->look();
    }
    const auto stop = (*guard_thread)->take_report();
    ASSERT_TRUE(stop) << incident;
    EXPECT_EQ(stop->decision.act, GuardAct::kStop);
    EXPECT_EQ(stop->signalled, 1U);
    EXPECT_EQ(stop->trainers[0], trainer_.pid());
    const auto kill = (*guard_thread)->take_report();
    ASSERT_TRUE(kill) << incident;
    EXPECT_EQ(kill->decision.act, GuardAct::kKill);

    free_mib(500);
    (*guard_thread)->look();
    EXPECT_FALSE((*guard_thread)->take_report()) << incident;
  }
  trainer_.give_order();
  EXPECT_EQ(trainer_.wait(), 0);
}

TEST_F(GuardThreadTest, ActsByItselfOnItsThread) {
  const auto guard_thread = this->guard_thread(false, SIGTERM, kNsPerSecond);
  ASSERT_TRUE(guard_thread->start());
  guard_thread->post(list());
  free_mib(40);

  pollfd news{guard_thread->news_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&news, 1, 10'000), 1);
  EXPECT_EQ(guard_thread->take_report()->decision.act, GuardAct::kStop);
  trainer_.wait();
  EXPECT_GT(guard_thread->last_check().at_ns, 0);
  guard_thread->stop();
}

TEST_F(GuardThreadTest, ThePathThatSignalsAndKillsAllocatesNothing) {
  if (!NoAllocScope::works()) {
    GTEST_SKIP() << "a sanitizer has its own malloc";
  }
  const auto guard_thread = this->guard_thread(false, SIGUSR1, 0);
  guard_thread->post(list());
  free_mib(40);

  const NoAllocScope scope;
  guard_thread->look();  // takes the list, sends the signal
  guard_thread->look();  // kills
  const std::size_t calls = scope.calls();

  EXPECT_EQ(calls, 0U);
  EXPECT_EQ(guard_thread->take_report()->decision.act, GuardAct::kStop);
  EXPECT_EQ(guard_thread->take_report()->kill.killed, 1U);
}

TEST_F(GuardThreadTest, TakesTheLatestListAndGivesTheOldOneBack) {
  const auto guard_thread = this->guard_thread(false, SIGUSR1, kNsPerSecond);
  auto first = list();
  const std::weak_ptr<HeadroomReader> first_limits = first->limits;
  guard_thread->post(std::move(first));
  guard_thread->look();
  guard_thread->post(list());
  guard_thread->look();
  EXPECT_FALSE(first_limits.expired()) << "its memory is not freed by the thread that acts";

  guard_thread->post(list());

  EXPECT_TRUE(first_limits.expired());
}

TEST(GuardThread, WithoutAListItWaits) {
  auto guard_thread = GuardThread::create({});
  ASSERT_TRUE(guard_thread);
  EXPECT_EQ((*guard_thread)->look(), 500'000'000);
  EXPECT_FALSE((*guard_thread)->take_report());
}

}  // namespace
}  // namespace tidemark::guard
