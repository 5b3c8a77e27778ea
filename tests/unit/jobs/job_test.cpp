// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job.h"

#include <gtest/gtest.h>

#include "common/clock.h"

namespace tidemark::harness {
namespace {

constexpr std::uint64_t kGb = 1'000'000'000;

JobTimes subprocess_times() {
  JobTimes times;
  times.submitted_ns = 10 * kNsPerSecond;
  times.first_message_ns = 12 * kNsPerSecond;
  times.first_step_ns = 13 * kNsPerSecond;
  times.last_step_ns = 108 * kNsPerSecond;
  times.last_message_ns = 112 * kNsPerSecond;
  times.ended_ns = 115 * kNsPerSecond;
  times.steps_seen = 191;
  return times;
}

TEST(Ledger, CountsWhatAProcessOfItsOwnReturns) {
  const MemoryLedger memory{4 * kGb, 18 * kGb, 4 * kGb};

  EXPECT_EQ(returned_bytes(memory), 14 * kGb);
  EXPECT_DOUBLE_EQ(*returned_percent(memory), 100.0);
}

TEST(Ledger, SeesThatNothingCameBack) {
  const MemoryLedger memory{4 * kGb, 18 * kGb, 18 * kGb};

  EXPECT_EQ(returned_bytes(memory), 0U);
  EXPECT_DOUBLE_EQ(*returned_percent(memory), 0.0);
}

TEST(Ledger, ReturnsNothingWhenTheEndIsAboveTheLastPeakThatWasSeen) {
  EXPECT_EQ(returned_bytes({4 * kGb, 17 * kGb, 18 * kGb}), 0U);
}

TEST(Ledger, DoesNotKnowAShareOfNothing) {
  EXPECT_EQ(returned_percent({18 * kGb, 18 * kGb, 18 * kGb}), std::nullopt);
}

TEST(Ledger, KeepsUnknownUnknown) {
  EXPECT_EQ(returned_bytes({4 * kGb, std::nullopt, 4 * kGb}), std::nullopt);
  EXPECT_EQ(returned_percent({std::nullopt, 18 * kGb, 4 * kGb}), std::nullopt);
  EXPECT_EQ(startup_seconds({}), std::nullopt);
  EXPECT_EQ(wall_seconds({}), std::nullopt);
  EXPECT_EQ(steps_per_second({}), std::nullopt);
  EXPECT_EQ(isolation_overhead_percent({}), std::nullopt);
}

TEST(Ledger, CountsStartUpFromSubmissionToTheFirstStep) {
  EXPECT_DOUBLE_EQ(*startup_seconds(subprocess_times()), 3.0);
  EXPECT_DOUBLE_EQ(*wall_seconds(subprocess_times()), 105.0);
}

TEST(Ledger, LeavesStartUpOutOfStepsPerSecond) {
  EXPECT_DOUBLE_EQ(*steps_per_second(subprocess_times()), 2.0);
}

TEST(Ledger, HasNoRateOfOneStep) {
  JobTimes times = subprocess_times();
  times.last_step_ns = times.first_step_ns;
  times.steps_seen = 1;

  EXPECT_EQ(steps_per_second(times), std::nullopt);
}

TEST(Ledger, ChargesIsolationWithTheTimeBeforeAndAfterTheTrainer) {
  EXPECT_DOUBLE_EQ(*isolation_overhead_percent(subprocess_times()), 5.0);
}

TEST(Ledger, ChargesAJobInTheServerWithNothing) {
  JobTimes times = subprocess_times();
  times.first_message_ns = times.submitted_ns;
  times.last_message_ns = times.ended_ns;

  EXPECT_DOUBLE_EQ(*isolation_overhead_percent(times), 0.0);
}

}  // namespace
}  // namespace tidemark::harness
