// SPDX-License-Identifier: Apache-2.0
#include "live/track.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/exit_code.h"
#include "tests/support/fake_watch_system.h"

namespace tidemark::live {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::FakeWatchSystem;

constexpr pid_t kTrainer = 4'000'010;

class TrackTest : public testing::Test {
 protected:
  TrackTest() {
    system.put(kTrainer, 100);
    options.watch.target.pids = {kTrainer};
    options.watch.duration_ns = 60 * kNsPerSecond;
  }
  // Leak or warm-up, nobody can tell yet.
  void grow(double end_s = 60.0, unsigned mib_per_s = 2) {
    for (int t = 0; t < static_cast<int>(end_s); ++t) {
      system.at(t + 0.5, [this, t, mib_per_s] {
        system.put(kTrainer, 100 + mib_per_s * static_cast<unsigned>(t));
      });
    }
  }
  void run_command(std::vector<std::string> command) {
    options.watch.target = {};
    options.watch.target.command = std::move(command);
    system.at(30.0, [this] { system.end_command(0); });
    run_track(options, &system);
  }

  FakeWatchSystem system;
  TrackOptions options;
};

TEST_F(TrackTest, ProposesTheGuardWhereALikelyLeakFillsMemoryWithinTheHour) {
  grow(60.0, 10);

  EXPECT_EQ(run_track(options, &system), kExitUndetermined);

  EXPECT_THAT(system.stdout_text(), HasSubstr("\nnext: tidemark guard --pid 4000010 stops it"));
}

TEST_F(TrackTest, EndsWithTheNextCommandForWhatRuns) {
  grow();

  EXPECT_EQ(run_track(options, &system), kExitUndetermined);

  EXPECT_THAT(system.stdout_text(), HasSubstr("\nnext: tidemark track --pid 4000010 --duration "));
}

TEST_F(TrackTest, DoesNotProposeToWatchWhatHasExited) {
  grow(30.0);
  system.at(30.0, [&] { system.end(kTrainer); });

  run_track(options, &system);

  EXPECT_THAT(system.stdout_text(), HasSubstr("next: record a longer run: tidemark track"));
  EXPECT_THAT(system.stdout_text(), Not(HasSubstr("--pid 4000010")));
}

TEST_F(TrackTest, ProposesToStartTheCommandAgain) {
  run_command({"python3", "train.py", "a b"});

  EXPECT_THAT(system.stderr_text(), HasSubstr("-- python3 train.py 'a b'"));
}

TEST_F(TrackTest, KeepsSecretsOutOfTheNextCommand) {
  run_command({"python3", "train.py", "--token", "abc"});

  EXPECT_THAT(system.stderr_text(), HasSubstr("-- COMMAND"));
  EXPECT_THAT(system.stderr_text(), Not(HasSubstr("abc")));
}

}  // namespace
}  // namespace tidemark::live
