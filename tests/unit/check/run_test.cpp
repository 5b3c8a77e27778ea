// SPDX-License-Identifier: Apache-2.0
#include "check/run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_watch_system.h"

namespace tidemark::check {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using tests::FakeWatchSystem;

constexpr pid_t kStray = 4'000'010;
constexpr std::uint64_t kMiB = 1U << 20U;

class CheckRunTest : public testing::Test {
 protected:
  CheckRunTest() {
    spec.command = {"train"};
    spec.interval_ns = kNsPerSecond;
    spec.pss = monitor::PssMode::kOff;
  }
  CheckRun run() { return run_once(spec, {meter, "", false, &system}); }
  static double largest_rss(const CheckRun& run) {
    double largest = 0.0;
    for (const auto& cell : run.track.run.tracks.at(0).of(tracker::Metric::kRss).cells()) {
      largest = std::max(largest, cell.max_bytes);
    }
    return largest;
  }

  FakeWatchSystem system;
  LeftBehindMeter meter{system};
  CheckSpec spec;
};

TEST_F(CheckRunTest, KeepsTheStatusOfTheCommandAndHowLongItRan) {
  system.at(4.0, [&] { system.end_command(3 << 8); });

  const CheckRun result = run();

  EXPECT_EQ(result.ending.command_status, 3);
  EXPECT_DOUBLE_EQ(result.seconds, 4.0);
  EXPECT_EQ(result.left.bytes(), 0U);
  EXPECT_EQ(result.profile(), nullptr);
}

TEST_F(CheckRunTest, DoesNotJudgeWhatTheCommandDoesWhenItIsToldToEnd) {
  spec.duration_ns = 3 * kNsPerSecond;
  system.at(3.5, [&] { system.put(FakeWatchSystem::kCommandPid, 900, ::getpid()); });
  system.at(5.5, [&] { system.end_command(SIGTERM); });

  const CheckRun result = run();

  EXPECT_TRUE(result.ending.ran_out_of_time);
  EXPECT_DOUBLE_EQ(largest_rss(result), 50.0 * kMiB);
}

TEST_F(CheckRunTest, SaysThatSomebodyStoppedIt) {
  system.at(1.5, [&] { system.deliver(SIGTERM); });
  system.at(2.5, [&] { system.end_command(SIGTERM); });

  EXPECT_TRUE(run().measured().was_interrupted);
}

TEST_F(CheckRunTest, CountsWhatTheCommandLeftRunning) {
  system.at(1.5, [&] { system.put(kStray, 30, ::getpid()); });
  system.at(2.5, [&] { system.end_command(0); });

  const CheckRun result = run();

  ASSERT_EQ(result.left.strays.size(), 1U);
  EXPECT_EQ(result.left.strays[0].key.pid, kStray);
  EXPECT_EQ(result.measured().retained.bytes, 30.0 * kMiB);
}

class LeftBehindTest : public testing::Test {
 protected:
  void make_segment(const std::string& name) const {
    system.shm.write(name, std::string(64 * 1024, 'x'));
  }

  FakeWatchSystem system;
  LeftBehindMeter meter{system};
};

TEST_F(LeftBehindTest, IsNothingWhenNobodyIsLeft) {
  const LeftBehind left = meter.measure();

  EXPECT_THAT(left.strays, IsEmpty());
  EXPECT_EQ(left.bytes(), 0U);
  EXPECT_EQ(left.gpu_bytes, 0U);
  EXPECT_EQ(left.problem, "");
}

TEST_F(LeftBehindTest, NamesTheLargestProcessFirst) {
  system.put(kStray, 10, ::getpid());
  system.put(kStray + 1, 70, ::getpid());

  const LeftBehind left = meter.measure();

  ASSERT_EQ(left.strays.size(), 2U);
  EXPECT_EQ(left.strays[0].key.pid, kStray + 1);
  EXPECT_EQ(left.strays[0].bytes, 70 * kMiB);
  EXPECT_EQ(left.stray_bytes, 80 * kMiB);
}

TEST_F(LeftBehindTest, LeavesOtherChildrenOfOursAlone) {
  system.put_stranger(kStray, 500);

  EXPECT_THAT(meter.measure().strays, IsEmpty());
  meter.end_strays();

  EXPECT_THAT(system.signals, IsEmpty());
}

TEST_F(LeftBehindTest, KnowsAProcessThatWasSeenWithoutTheMark) {
  system.put_stranger(kStray, 10);  // it has cleared its environment
  meter.add_process({kStray, 100});

  EXPECT_EQ(meter.measure().strays.size(), 1U);
}

TEST_F(LeftBehindTest, WaitsAMomentForProcessesThatAreAboutToExit) {
  system.put(kStray, 10, ::getpid());
  system.at(1.0, [&] { system.end(kStray); });

  EXPECT_THAT(meter.measure().strays, IsEmpty());
  EXPECT_LT(system.now_s(), 2.0);
}

TEST_F(LeftBehindTest, DoesNotCountSegmentsThatWereThereBefore) {
  make_segment("torch_4711_before");
  LeftBehindMeter later(system);
  later.add_process({4711, 100});
  make_segment("torch_4711_new");

  const LeftBehind left = later.measure();

  ASSERT_EQ(left.segments.largest.size(), 1U);
  EXPECT_EQ(left.segments.largest[0].path, "torch_4711_new");
  EXPECT_EQ(left.bytes(), 64U * 1024U);
}

TEST_F(LeftBehindTest, DoesNotCountSegmentsThatOthersHaveMadeMeanwhile) {
  make_segment("psm_neighbour");
  make_segment("psm_seen_in_use");
  struct stat info {};
  ASSERT_EQ(::stat(system.shm.path("psm_seen_in_use").c_str(), &info), 0);
  meter.add_segments({info.st_ino});

  const LeftBehind left = meter.measure();

  ASSERT_EQ(left.segments.largest.size(), 1U);
  EXPECT_EQ(left.segments.largest[0].path, "psm_seen_in_use");
}

TEST_F(LeftBehindTest, KillsStraysThatDoNotEndWhenTold) {
  system.put(kStray, 10, ::getpid());
  system.at(3.0, [&] { system.end(kStray); });

  meter.end_strays();

  const auto sent = [&](int number) {
    return std::count(system.signals.begin(), system.signals.end(),
                      std::pair<pid_t, int>{kStray, number});
  };
  EXPECT_EQ(sent(SIGTERM), 1);
  EXPECT_GE(sent(SIGKILL), 1);
}

}  // namespace
}  // namespace tidemark::check
