// SPDX-License-Identifier: Apache-2.0
#include "live/watch_output.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/units.h"

namespace tidemark::live {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kMuch = static_cast<std::uint64_t>(100 * kMiB);

TEST(SegmentNotes, NameWhatNobodyHolds) {
  monitor::ShmReport report;
  report.unheld_bytes = kMuch;
  report.others_unheld_bytes = kMuch;
  monitor::ShmSegment segment;
  segment.path = "torch_7_1";
  segment.allocated_bytes = kMuch;
  segment.owner_pid = 7;
  segment.owner_alive = false;
  report.largest_unheld = {segment};

  EXPECT_THAT(segment_notes(report, kMuch),
              ElementsAre(HasSubstr("holds 100 MiB more that no process has open"),
                          "note: /dev/shm/torch_7_1 holds 100 MiB and no process has it open, made "
                          "by pid 7 (dead)"));
}

TEST(SegmentNotes, SayWhatCouldNotBeFoundOut) {
  EXPECT_THAT(segment_notes(std::nullopt, kMuch), ElementsAre(HasSubstr("too short to find out")));
  monitor::ShmReport report;  // after one pass
  EXPECT_THAT(segment_notes(report, kMuch), ElementsAre(HasSubstr("too short to find out")));
  report.unheld_bytes = 0;
  report.job_unknown_bytes = kMuch;
  EXPECT_THAT(segment_notes(report, kMuch),
              ElementsAre(HasSubstr("holds 100 MiB of this job; whether a process has it open")));
}

TEST(SegmentNotes, AreNoneForALittle) {
  EXPECT_THAT(segment_notes(std::nullopt, 4096), IsEmpty());
  EXPECT_THAT(segment_notes(std::nullopt, std::nullopt), IsEmpty());
  monitor::ShmReport report;
  report.unheld_bytes = 0;
  report.job_unknown_bytes = report.others_unheld_bytes = 4096;
  EXPECT_THAT(segment_notes(report, kMuch), IsEmpty());
}

}  // namespace
}  // namespace tidemark::live
