// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/tracer/recorder_fixture.h"

namespace tidemark::tracer {
namespace {

using wire::Mode;
using wire::SiteKind;

class MapRecorderTest : public RecorderTest {};

TEST_F(MapRecorderTest, CountsMappingsByKind) {
  begin(Mode::kSampled);
  recorder().maps().record_map(page_at(0), 10 * kPage, SiteKind::kAnonymousMap,
                               capture_registers());
  recorder().maps().record_map(page_at(20), 4 * kPage, SiteKind::kSharedMap, capture_registers());
  recorder().maps().record_unmap(page_at(2), 3 * kPage);

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 7 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
  EXPECT_EQ(sums(SiteKind::kSharedMap).live_bytes, 4 * kPage);
}

TEST_F(MapRecorderTest, AMappingThatWasCutIsOneBlockUntilItsLastPartIsGone) {
  begin(Mode::kExact);
  recorder().maps().record_map(page_at(0), 9 * kPage, SiteKind::kAnonymousMap, capture_registers());
  recorder().maps().record_unmap(page_at(4), kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
  recorder().maps().record_unmap(page_at(0), 4 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
  recorder().maps().record_unmap(page_at(5), 4 * kPage);

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 0);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 0);
}

TEST_F(MapRecorderTest, AMovedMappingKeepsKindAndEpoch) {
  begin(Mode::kExact);
  header().control.epoch.store(5);
  recorder().maps().record_map(page_at(0), 2 * kPage, SiteKind::kSharedMap, capture_registers());
  header().control.epoch.store(9);
  move_mapping(page_at(0), 2 * kPage, page_at(64), 8 * kPage);

  EXPECT_EQ(sums(SiteKind::kSharedMap).live_bytes, 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kSharedMap).live_blocks, 1);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).alloc_blocks, 0);
  MapRecorder::MovedRanges found;
  recorder().maps().begin_remap(page_at(64), 8 * kPage, true, found);
  ASSERT_EQ(found.count, 1U);
  EXPECT_EQ(found.piece[0].epoch, 5U);
}

TEST_F(MapRecorderTest, AnAddressThatAnotherThreadMapsDuringAMoveIsThatThreads) {
  begin(Mode::kExact);
  recorder().maps().record_map(page_at(0), 4 * kPage, SiteKind::kAnonymousMap, capture_registers());
  MapRecorder::MovedRanges moved;
  recorder().maps().begin_remap(page_at(0), 4 * kPage, false, moved);
  std::thread([&] {  // after the kernel has moved it, before mremap has returned
    recorder().maps().record_map(page_at(0), 4 * kPage, SiteKind::kSharedMap, capture_registers());
  })
      .join();
  recorder().maps().finish_remap(moved, page_at(64), 8 * kPage, capture_registers());

  EXPECT_EQ(sums(SiteKind::kSharedMap).live_bytes, 4 * kPage);
  EXPECT_EQ(sums(SiteKind::kSharedMap).live_blocks, 1);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
}

TEST_F(MapRecorderTest, AMappingThatCouldNotBeMovedIsAsItWas) {
  begin(Mode::kExact);
  recorder().maps().record_map(page_at(0), 4 * kPage, SiteKind::kAnonymousMap, capture_registers());
  recorder().maps().record_map(page_at(4), 4 * kPage, SiteKind::kAnonymousMap, capture_registers());
  MapRecorder::MovedRanges moved;
  recorder().maps().begin_remap(page_at(2), 4 * kPage, false, moved);
  EXPECT_EQ(moved.count, 2U);
  recorder().maps().undo_remap(moved);

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 2);
  recorder().maps().record_unmap(page_at(0), 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 0);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 0);
}

TEST_F(MapRecorderTest, AMappingThatTheParentTookOutIsNotTheChilds) {
  begin(Mode::kExact);
  recorder().maps().record_map(page_at(0), 4 * kPage, SiteKind::kAnonymousMap, capture_registers());
  MapRecorder::MovedRanges moved;
  recorder().maps().begin_remap(page_at(0), 4 * kPage, false, moved);
  ASSERT_EQ(moved.count, 1U);
  moved.piece[0].site = 100'000;  // the child has no such site
  restart_in_child(Mode::kExact);

  recorder().maps().undo_remap(moved);
  recorder().maps().finish_remap(moved, page_at(64), 8 * kPage, capture_registers());

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).alloc_bytes, 0);
  recorder().maps().record_unmap(page_at(0), 4 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 0);
  EXPECT_EQ(losses().ranges_full, 0U);
}

TEST_F(MapRecorderTest, ASecondMappingOfTheSameMemoryLeavesTheFirst) {
  begin(Mode::kExact);
  recorder().maps().record_map(page_at(0), 4 * kPage, SiteKind::kSharedMap, capture_registers());
  MapRecorder::MovedRanges moved;
  recorder().maps().begin_remap(page_at(0), 0, true, moved);
  recorder().maps().finish_remap(moved, page_at(64), 4 * kPage, capture_registers());

  EXPECT_EQ(sums(SiteKind::kSharedMap).live_bytes, 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kSharedMap).live_blocks, 2);
}

TEST_F(MapRecorderTest, AMovedMappingThatIsNotRecordedStaysSo) {
  begin(Mode::kExact);
  move_mapping(page_at(0), kPage, page_at(16), 2 * kPage);

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).alloc_blocks, 0);
}

TEST_F(MapRecorderTest, RecordedMappingsAreReleasedInDormantModeToo) {
  begin(Mode::kExact);
  recorder().maps().record_map(page_at(0), 2 * kPage, SiteKind::kAnonymousMap, capture_registers());
  recorder().maps().record_map(page_at(8), 2 * kPage, SiteKind::kAnonymousMap, capture_registers());
  set_mode(Mode::kDormant);
  move_mapping(page_at(0), 2 * kPage, page_at(64), 8 * kPage);
  recorder().maps().record_map(page_at(9), kPage, SiteKind::kAnonymousMap, capture_registers());

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
}

}  // namespace
}  // namespace tidemark::tracer
