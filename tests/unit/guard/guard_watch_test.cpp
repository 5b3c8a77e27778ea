// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_watch.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/exit_code.h"
#include "live/watch.h"
#include "tests/support/fake_watch_system.h"

namespace tidemark::guard {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using tests::FakeWatchSystem;

constexpr pid_t kTrainer = 4'000'010;

class GuardWatchTest : public testing::Test {
 protected:
  GuardWatchTest() {
    options.track.watch.pss = monitor::PssMode::kOff;
    folder.write("oom_score_adj", "0\n");
  }
  int run() {
    guard.emplace(options, GuardServices{notifier, service, shield, restarts}, make_look);
    return live::watch(options.track.watch, *guard, &system);
  }
  void run_command() { options.track.watch.target.command = {"train"}; }

  FakeWatchSystem system;
  tests::TempTree folder;
  GuardOptions options;
  const std::optional<Notifier> notifier;
  const ServiceManager service = ServiceManager::from_environment();
  OomShield shield{folder.path("oom_score_adj")};
  RestartLedger restarts{/*enabled=*/true, /*most=*/3};
  std::optional<GuardWatch> guard;
  live::MakeLook make_look;  // nullptr: of this machine
};

TEST_F(GuardWatchTest, PassesOnTheStatusOfACommandThatEndsByItself) {
  run_command();
  system.at(1.5, [&] { system.end_command(5 << 8); });

  EXPECT_EQ(run(), 5);

  EXPECT_FALSE(guard->restarts());
  EXPECT_THAT(system.launched->environment, Contains(Pair("TIDEMARK_RESTARTS", "0")));
}

TEST_F(GuardWatchTest, RestartsACommandThatTheKernelKilledForItsMemory) {
  run_command();
  system.at(1.5, [&] { system.machine.write("proc/vmstat", "oom_kill 1\n"); });
  system.at(2.5, [&] { system.end_command(SIGKILL); });

  run();

  EXPECT_TRUE(guard->restarts());
  EXPECT_THAT(system.stderr_text(), HasSubstr("the kernel's OOM killer was faster"));
  EXPECT_THAT(system.stderr_text(), HasSubstr("RESTART"));
}

TEST_F(GuardWatchTest, DoesNotRestartACommandThatTheUserStopped) {
  run_command();
  system.at(1.5, [&] { system.deliver(SIGINT); });
  system.at(2.5, [&] { system.end_command(SIGINT); });

  run();

  EXPECT_FALSE(guard->restarts());
  EXPECT_THAT(system.stderr_text(), Not(HasSubstr("RESTART")));
}

TEST_F(GuardWatchTest, RefusesAJobThatIsWhereItWouldBeStopped) {
  system.put(kTrainer, 100);
  options.track.watch.target.pids = {kTrainer};
  options.track.watch.output = folder.path("run.tidemark");
  options.track.judge.limit_bytes = 80U << 20U;

  EXPECT_EQ(run(), kExitTarget);

  EXPECT_THAT(system.stderr_text(), HasSubstr("nothing is guarded"));
  EXPECT_FALSE(std::filesystem::exists(options.track.watch.output));
  EXPECT_LT(system.now_s(), 3.0);  // after the first tick only its lines are waited for
}

TEST_F(GuardWatchTest, LeavesAJobAloneThatHasRoom) {
  system.put(kTrainer, 100);
  options.track.watch.target.pids = {kTrainer};
  options.track.judge.limit_bytes = std::uint64_t{8} << 30U;
  options.track.watch.duration_ns = 5 * kNsPerSecond;

  EXPECT_EQ(run(), kExitOk);

  EXPECT_THAT(system.stderr_text(), HasSubstr("guard: "));
  EXPECT_THAT(system.stderr_text(), Not(HasSubstr("STOP")));
}

TEST_F(GuardWatchTest, WatchesWhatTheCommandLeftBehindUnlessItIsStartedAgain) {
  run_command();
  options.restart = true;
  system.at(0.5, [&] { system.put(kTrainer, 20, ::getpid()); });
  system.at(1.5, [&] { system.end_command(0); });
  system.at(6.2, [&] { system.end(kTrainer); });

  EXPECT_EQ(run(), 0);

  EXPECT_GT(system.now_s(), 6.0);
  EXPECT_THAT(system.stderr_text(), HasSubstr("1 of its processes runs on, and is watched"));
}

// A job of 100 MiB below 150 MiB, and whether it was looked at.
class LookedAtGuardWatchTest : public GuardWatchTest {
 protected:
  LookedAtGuardWatchTest() {
    make_look = [this](const ProcessKey&, const std::function<bool()>&) -> live::LookAtHeap {
      return [this](double, const heap::HeapExports&) -> Result<HeapFacts> {
        looked = true;
        return Error{Errc::kUnsupported, "it has no memory"};
      };
    };
    system.put(kTrainer, 100);
    options.track.watch.target.pids = {kTrainer};
    options.track.judge.limit_bytes = std::uint64_t{150} << 20U;
    options.keep_free.bytes = std::uint64_t{20} << 20U;
    options.track.watch.duration_ns = 5 * kNsPerSecond;
  }
  std::atomic<bool> looked = false;
};

TEST_F(LookedAtGuardWatchTest, LooksWhenALimitIsNearAndSaysOnceWhyItCannot) {
  // Time stands still until the look is over.
  system.at(2.5, [&] {
    while (!looked) {
      std::this_thread::yield();
    }
  });

  EXPECT_EQ(run(), kExitOk);

  EXPECT_TRUE(looked);
  EXPECT_THAT(system.stderr_text(), Not(HasSubstr("STOP")));
}

TEST_F(LookedAtGuardWatchTest, TouchesNobodyInADryRunOrWhenToldNotTo) {
  options.dry_run = true;
  EXPECT_EQ(run(), kExitOk);
  EXPECT_FALSE(looked);

  options.dry_run = false;
  options.last_look = false;
  EXPECT_EQ(run(), kExitOk);
  EXPECT_FALSE(looked);
}

}  // namespace
}  // namespace tidemark::guard
