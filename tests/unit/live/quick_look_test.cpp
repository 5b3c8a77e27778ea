// SPDX-License-Identifier: Apache-2.0
#include "live/quick_look.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/exit_code.h"
#include "tests/support/fake_watch_system.h"

namespace tidemark::live {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;
using tests::FakeWatchSystem;

constexpr pid_t kTrainer = 4'000'010;

// A machine with one training job, if it is put there.
class QuickLookTest : public testing::Test {
 protected:
  QuickLookTest() {
    options.commands = {{"find", "Which process is the training job"}, {"monitor", "Watch it"}};
  }
  void grow(double mib_per_s) {
    for (int i = 0; i < 200; ++i) {
      system.at(i * 0.1, [this, i, mib_per_s] {
        system.put(kTrainer, 1000 + static_cast<std::uint64_t>(i * 0.1 * mib_per_s));
      });
    }
  }
  int run() { return run_quick_look(options, &system); }
  std::vector<std::string> lines() const {
    std::vector<std::string> result;
    const std::string text = system.stdout_text();
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      result.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return result;
  }

  FakeWatchSystem system;
  QuickLookOptions options;
};

TEST_F(QuickLookTest, AnswersInThreeLinesAfterTwentySeconds) {
  system.put(kTrainer, 1000);

  const int code = run();

  EXPECT_EQ(code, kExitUndetermined);
  EXPECT_NEAR(system.now_s(), 20.0, 0.5);
  ASSERT_EQ(lines().size(), 3U) << system.stdout_text();
  EXPECT_EQ(lines()[0],
            "training job: pid 4000010 (python3 train.py), no workers, footprint 1000 MiB");
  EXPECT_THAT(lines()[1], MatchesRegex("in 20 s: TOO EARLY, 1000 MiB -> 1000 MiB .\\+0 B.; only a "
                                       "leak above .*/min since 00:00:00 would have been seen"));
  EXPECT_THAT(lines()[2], MatchesRegex("next: tidemark track --pid 4000010 --duration [0-9]+min"));
  EXPECT_THAT(system.stderr_text(), HasSubstr("watching pid 4000010 for 20 s"));
}

TEST_F(QuickLookTest, SaysHowFastItGrows) {
  system.fake_clock.booted_ns = system.fake_clock.now_ns - 600 * kNsPerSecond;
  system.put(kTrainer, 1000);
  grow(9.0);

  EXPECT_EQ(run(), kExitUndetermined);

  ASSERT_EQ(lines().size(), 3U) << system.stdout_text();
  EXPECT_THAT(lines()[1], StartsWith("in 20 s: LIKELY LEAK 91 %, +"));
  EXPECT_THAT(lines()[1], HasSubstr("MiB/min"));
  EXPECT_THAT(lines()[1], HasSubstr("limit 16.0 GiB in "));
  EXPECT_EQ(lines()[2],
            "next: tidemark diagnose --pid 4000010 (who holds it, which line made it); tidemark "
            "guard --pid 4000010 stops it with a checkpoint in time")
      << "full in less than half an hour";
}

TEST_F(QuickLookTest, GuessesNothingOfAJobThatHasJustBegun) {
  system.put(kTrainer, 1000);
  grow(9.0);

  EXPECT_EQ(run(), kExitUndetermined);

  ASSERT_EQ(lines().size(), 3U) << system.stdout_text();
  EXPECT_THAT(lines()[1], StartsWith("in 20 s: GROWING, +"));
}

TEST_F(QuickLookTest, NamesTheDiagnosisWhereItGrows) {
  system.put(kTrainer, 1000);
  grow(3.0);

  EXPECT_EQ(run(), kExitUndetermined);

  EXPECT_EQ(lines()[2], "next: tidemark diagnose --pid 4000010 (who holds it, which line made it)");
}

TEST_F(QuickLookTest, GivesNoAllClearForARiseThatIsTooSmallToCountYet) {
  system.put(kTrainer, 1000);
  grow(1.0);

  EXPECT_EQ(run(), kExitUndetermined);

  EXPECT_THAT(lines()[1],
              StartsWith("in 20 s: TOO EARLY, 1000 MiB -> 1019 MiB (+19.0 MiB); rising by +"));

  EXPECT_THAT(system.stdout_text(), HasSubstr("next: tidemark track --pid 4000010 --duration "));
}

TEST_F(QuickLookTest, AnswersAtOnceWhenItIsToldToStop) {
  system.put(kTrainer, 1000);
  system.at(6.1, [&] { system.deliver(SIGINT, true); });

  EXPECT_EQ(run(), kExitUndetermined);

  EXPECT_NEAR(system.now_s(), 6.1, 0.5);
  ASSERT_EQ(lines().size(), 3U) << system.stdout_text();
  EXPECT_THAT(lines()[1], StartsWith("in 6.1 s: "));
}

TEST_F(QuickLookTest, ProposesNothingForAJobThatHasExited) {
  system.put(kTrainer, 1000);
  system.at(5.0, [&] { system.end(kTrainer); });

  run();

  ASSERT_EQ(lines().size(), 3U) << system.stdout_text();
  EXPECT_EQ(lines()[2], "pid 4000010 has exited");
}

TEST_F(QuickLookTest, ListsTheCommandsWhereThereIsNoJob) {
  EXPECT_EQ(run(), kExitTarget);

  EXPECT_THAT(system.stdout_text(), StartsWith("found no training process among "));
  EXPECT_THAT(system.stdout_text(), HasSubstr("  find     Which process is the training job\n"
                                              "  monitor  Watch it\n"));
  EXPECT_THAT(system.stderr_text(), IsEmpty());
  EXPECT_EQ(system.now_s(), 0.0);
}

TEST_F(QuickLookTest, NamesTheJobsWhereThereAreSeveral) {
  system.put(kTrainer, 1000);
  system.put(kTrainer + 1, 1000);

  EXPECT_EQ(run(), kExitTarget);

  EXPECT_THAT(system.stdout_text(), HasSubstr("several jobs look equally like training\n"));
  EXPECT_THAT(system.stdout_text(), HasSubstr("--pid 4000010 (python3 train.py"));
  EXPECT_THAT(system.stdout_text(), HasSubstr("tidemark monitor --pid "));
}

}  // namespace
}  // namespace tidemark::live
